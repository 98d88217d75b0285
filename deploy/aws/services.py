"""API, scheduler and workers as services of their own on Fargate, from one image."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnParameter, Duration, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_elasticloadbalancingv2 as elb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from collector import PORTS, add_collector
from constructs import Construct
from data import Data
from network import API, Network
from options import ROOT, Options

from headway.observe.cloudwatch import BACKLOG_PER_WORKER, NAMESPACE, SWITCH

DATA = "/data"
"""The volume of the Dockerfile: Fargate gives a mount there the image's owner and mode, and any other one to root."""
EXCLUDED = [".git", ".venv", "tests", "cdk.out", "web/node_modules", "**/__pycache__", "*.db*"]


class Services(Construct):
    """The processes, the load balancer before the API, and how their number follows the work."""

    def __init__(self, scope: Construct, name: str, *, network: Network, data: Data, options: Options) -> None:
        super().__init__(scope, name)
        self._network, self._data, self._options = network, data, options
        self.cluster = ecs.Cluster(
            self,
            "Cluster",
            vpc=network.vpc,
            container_insights_v2=ecs.ContainerInsights.ENABLED,
            enable_fargate_capacity_providers=True,
        )
        self._image = ecs.ContainerImage.from_docker_image_asset(
            assets.DockerImageAsset(
                self, "Image", directory=str(ROOT), exclude=EXCLUDED, platform=assets.Platform.LINUX_ARM64
            )
        )
        self.log_group = logs.LogGroup(self, "Logs", retention=logs.RetentionDays.THREE_MONTHS, encryption_key=data.key)
        data.key.add_to_resource_policy(_logs_use_it(Stack.of(self).region))
        self._workspace = (
            aps.CfnWorkspace(self, "Prometheus", kms_key_arn=data.key.key_arn) if options.prometheus else None
        )
        app = ["--app", options.app] if options.app else []
        self.api = self._service("Api", ["api", "--host", "0.0.0.0"], port=API, spot=False)  # noqa: S104 - the load balancer is before it
        self.scheduler = self._service("Scheduler", ["scheduler", *app], count=2, spot=False)
        queues = [part for queue in options.queues.split(",") for part in ("--queue", queue)]
        self.worker = self._service("Worker", ["worker", *app, *queues, "--grace", str(options.grace)], spot=True)
        self.balancer = self._balance()
        self._scale_api()
        self._scale_workers()

    def _service(
        self, name: str, command: list[str], *, spot: bool, count: int | None = None, port: int | None = None
    ) -> ecs.FargateService:
        """Without a count its number is for scaling to decide, and no deployment undoes what that has decided."""
        task = ecs.FargateTaskDefinition(
            self,
            f"{name}Task",
            cpu=512,
            memory_limit_mib=1024,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
            ),
            volumes=[ecs.Volume(name="data")],
        )
        migrate = self._container(task, "Migrate", ["migrate"], essential=False)
        container = self._container(
            task,
            name,
            [*command, "--log-json"],
            environment={"HEADWAY_METRICS_PORT": str(PORTS[name])},
            health_check=_health(port or PORTS[name]),
            stop_timeout=Duration.seconds(min(120, self._options.grace + 10)),
            port_mappings=[ecs.PortMapping(container_port=port)] if port else None,
        )
        # Of several that start at once one changes the schema, the others wait for its lock.
        container.add_container_dependencies(
            ecs.ContainerDependency(container=migrate, condition=ecs.ContainerDependencyCondition.SUCCESS)
        )
        if self._data.bucket is not None:
            self._data.bucket.grant_read_write(task.task_role)
        if self._workspace is not None:
            add_collector(task, name, self._workspace, self.log_group)
        if name == "Worker":
            task.add_to_task_role_policy(self._may_protect_itself())
        return ecs.FargateService(
            self,
            name,
            cluster=self.cluster,
            task_definition=task,
            desired_count=count,
            security_groups=[self._network.services],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
            min_healthy_percent=100,
            max_healthy_percent=200,
            capacity_provider_strategies=_capacity(spot),
        )

    def _container(
        self,
        task: ecs.FargateTaskDefinition,
        name: str,
        command: list[str],
        *,
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> ecs.ContainerDefinition:
        """One of our image. All that it can write to is /data, whose owner the image says."""
        container = task.add_container(
            name,
            image=self._image,
            command=command,
            environment={**self._environment(), **(environment or {})},
            secrets=self._secrets(),
            readonly_root_filesystem=True,
            logging=ecs.LogDrivers.aws_logs(stream_prefix=name.lower(), log_group=self.log_group),
            **settings,
        )
        container.add_mount_points(ecs.MountPoint(container_path=DATA, source_volume="data", read_only=False))
        return container

    def _environment(self) -> dict[str, str]:
        bucket, domain = self._data.bucket, self._options.domain
        output = {"HEADWAY_OUTPUT": f"s3://{bucket.bucket_name}/output"} if bucket else {}
        named = {"HEADWAY_PUBLIC_URL": f"https://{domain}"} if domain else {}
        # The load balancer speaks TLS with callers and adds its own header; nothing else reaches the API's port.
        trusted = {"HEADWAY_TRUSTED_PROXIES": self._network.vpc.vpc_cidr_block}
        return {SWITCH: "1", "TMPDIR": DATA, **trusted, **named, **output}

    def _secrets(self) -> dict[str, ecs.Secret]:
        data = self._data
        return {
            "HEADWAY_STORE": ecs.Secret.from_secrets_manager(data.store_url),
            "HEADWAY_BUS": ecs.Secret.from_secrets_manager(data.bus_url),
            "HEADWAY_SECRET_KEY": ecs.Secret.from_secrets_manager(data.vault_key),
            "HEADWAY_ADMIN_TOKEN": ecs.Secret.from_secrets_manager(data.admin_token),
        }

    def _may_protect_itself(self) -> iam.PolicyStatement:
        """A worker that holds jobs is not taken away when their number shrinks."""
        return iam.PolicyStatement(
            actions=["ecs:UpdateTaskProtection", "ecs:GetTaskProtection"],
            resources=["*"],
            conditions={"ArnEquals": {"ecs:cluster": self.cluster.cluster_arn}},
        )

    def _balance(self) -> elb.ApplicationLoadBalancer:
        options, network = self._options, self._network
        subnets = ec2.SubnetType.PUBLIC if options.domain else ec2.SubnetType.PRIVATE_WITH_EGRESS
        balancer = elb.ApplicationLoadBalancer(
            self,
            "Balancer",
            vpc=network.vpc,
            internet_facing=options.domain is not None,
            vpc_subnets=ec2.SubnetSelection(subnet_type=subnets),
            security_group=network.balancer,
            drop_invalid_header_fields=True,
            # Event streams are quiet for up to fifteen seconds.
            idle_timeout=Duration.seconds(120),
        )
        balancer.add_redirect(open=False)
        certificate = self._certified(balancer) if options.domain else self._given_certificate()
        listener = balancer.add_listener(
            "Https", port=443, certificates=[certificate], ssl_policy=elb.SslPolicy.RECOMMENDED_TLS, open=False
        )
        self.group = listener.add_targets(
            "Api",
            port=API,
            protocol=elb.ApplicationProtocol.HTTP,
            targets=[self.api],
            # Not /readyz: that is false when claiming stalls, just when people need the API.
            health_check=elb.HealthCheck(path="/healthz", interval=Duration.seconds(15)),
            deregistration_delay=Duration.seconds(30),
        )
        return balancer

    def _given_certificate(self) -> elb.IListenerCertificate:
        """Of a load balancer within the VPC: without one, logins, secrets and scripts would be refused."""
        arn = (
            self._options.certificate
            or CfnParameter(
                Stack.of(self), "CertificateArn", description="a certificate in ACM for the API's name within the VPC"
            ).value_as_string
        )
        return elb.ListenerCertificate.from_arn(arn)

    def _certified(self, balancer: elb.ApplicationLoadBalancer) -> elb.IListenerCertificate:
        """The domain leads here, and a certificate says so."""
        options = self._options
        assert options.domain
        assert options.zone_id
        assert options.zone_name
        zone = route53.HostedZone.from_hosted_zone_attributes(
            self, "Zone", hosted_zone_id=options.zone_id, zone_name=options.zone_name
        )
        route53.ARecord(
            self,
            "Name",
            zone=zone,
            record_name=options.domain,
            target=route53.RecordTarget.from_alias(targets.LoadBalancerTarget(balancer)),
        )
        certificate = acm.Certificate(
            self,
            "Certificate",
            domain_name=options.domain,
            validation=acm.CertificateValidation.from_dns(zone),
        )
        return elb.ListenerCertificate.from_certificate_manager(certificate)

    def _scale_api(self) -> None:
        count = self.api.auto_scale_task_count(min_capacity=2, max_capacity=10)
        count.scale_on_request_count("Requests", requests_per_target=3000, target_group=self.group)

    def _scale_workers(self) -> None:
        options = self._options
        count = self.worker.auto_scale_task_count(min_capacity=options.workers_min, max_capacity=options.workers_max)
        count.scale_to_track_custom_metric(
            "Backlog",
            metric=self.backlog(),
            target_value=options.backlog_per_worker,
            scale_out_cooldown=Duration.seconds(60),
            scale_in_cooldown=Duration.minutes(5),
        )

    def backlog(self) -> cloudwatch.Metric:
        """Due jobs for each worker, as the scheduler tells it."""
        return cloudwatch.Metric(
            namespace=NAMESPACE, metric_name=BACKLOG_PER_WORKER, statistic="Average", period=Duration.minutes(1)
        )


def _logs_use_it(region: str) -> iam.PolicyStatement:
    """Of a key: this region's log service may encrypt with it."""
    actions = ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"]
    principal = iam.ServicePrincipal(f"logs.{region}.amazonaws.com")
    return iam.PolicyStatement(principals=[principal], actions=actions, resources=["*"])


def _health(port: int) -> ecs.HealthCheck:
    """What the process says of itself; the image's own check asks the API's port only."""
    ask = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/healthz', timeout=4)"
    return ecs.HealthCheck(
        command=["CMD", "python", "-c", ask],
        interval=Duration.seconds(15),
        timeout=Duration.seconds(5),
        retries=3,
        start_period=Duration.seconds(60),
    )


def _capacity(spot: bool) -> list[ecs.CapacityProviderStrategy]:
    """Workers may be taken away at any time: their jobs are given back. One stays on firm ground."""
    if not spot:
        return [ecs.CapacityProviderStrategy(capacity_provider="FARGATE", weight=1)]
    return [
        ecs.CapacityProviderStrategy(capacity_provider="FARGATE", base=1, weight=1),
        ecs.CapacityProviderStrategy(capacity_provider="FARGATE_SPOT", weight=3),
    ]
