"""Where everything lies: services and data in private subnets, the load balancer in front."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

POSTGRES = 5432
AMQPS = 5671
API = 8000


class Network(Construct):
    """A VPC of two zones, and one security group for each part; who may talk to whom is said here."""

    def __init__(self, scope: Construct, name: str, *, public: bool) -> None:
        super().__init__(scope, name)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=2,
            nat_gateways=1,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24),
                ec2.SubnetConfiguration(name="services", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS, cidr_mask=22),
                ec2.SubnetConfiguration(name="data", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24),
            ],
        )
        self.vpc.add_flow_log("FlowLog")
        self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        self.balancer = self._group("Balancer", "The load balancer of the API")
        self.services = self._group("Services", "API, schedulers and workers")
        self.database = self._group("Database", "PostgreSQL", egress=False)
        self.broker = self._group("Broker", "RabbitMQ", egress=False)
        self.database.add_ingress_rule(self.services, ec2.Port.tcp(POSTGRES), "services to PostgreSQL")
        self.broker.add_ingress_rule(self.services, ec2.Port.tcp(AMQPS), "services to RabbitMQ")
        self.services.add_ingress_rule(self.balancer, ec2.Port.tcp(API), "load balancer to the API")
        who = ec2.Peer.any_ipv4() if public else ec2.Peer.ipv4(self.vpc.vpc_cidr_block)
        for port in (443, 80):
            self.balancer.add_ingress_rule(who, ec2.Port.tcp(port), "callers of the API")

    def _group(self, name: str, description: str, *, egress: bool = True) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, name, vpc=self.vpc, description=description, allow_all_outbound=egress)
