"""What must not be lost, and what only carries: PostgreSQL, RabbitMQ, output, secrets. All encrypted."""

from __future__ import annotations

from aws_cdk import Duration, Fn, RemovalPolicy, SecretValue
from aws_cdk import aws_amazonmq as mq
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct
from network import POSTGRES, Network
from options import Options

USER = "headway"


class Data(Construct):
    """The store, the bus, the place for output, and the secrets by which the services reach them."""

    def __init__(self, scope: Construct, name: str, *, network: Network, options: Options) -> None:
        super().__init__(scope, name)
        self.key = kms.Key(self, "Key", enable_key_rotation=True, description="Headway: everything at rest")
        self.database = self._database(network, options)
        self.store_url = self._store_url()
        self.broker_password = self._secret("BrokerPassword", length=32)
        self.broker = self._broker(network, options)
        self.bus_url = self._bus_url()
        self.vault_key = self._vault_key()
        self.admin_token = self._secret("AdminToken", length=48)
        self.bucket = self._bucket() if options.output == "s3" else None

    def _database(self, network: Network, options: Options) -> rds.DatabaseInstance:
        engine = rds.DatabaseInstanceEngine.postgres(version=rds.PostgresEngineVersion.VER_17_9)
        return rds.DatabaseInstance(
            self,
            "Database",
            engine=engine,
            parameter_group=rds.ParameterGroup(self, "Parameters", engine=engine, parameters={"rds.force_ssl": "1"}),
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
            security_groups=[network.database],
            instance_type=ec2.InstanceType(options.database_class),
            multi_az=options.multi_az,
            allocated_storage=50,
            max_allocated_storage=500,
            storage_type=rds.StorageType.GP3,
            storage_encrypted=True,
            storage_encryption_key=self.key,
            credentials=rds.Credentials.from_generated_secret(
                USER, encryption_key=self.key, exclude_characters=" %+~`#$&*()|[]{}:;<>?!'/@\"\\,=^"
            ),
            database_name="headway",
            backup_retention=Duration.days(14),
            deletion_protection=True,
            removal_policy=RemovalPolicy.SNAPSHOT,
            auto_minor_version_upgrade=True,
            enable_performance_insights=True,
            performance_insight_encryption_key=self.key,
            cloudwatch_logs_exports=["postgresql"],
            copy_tags_to_snapshot=True,
        )

    def _store_url(self) -> secrets.Secret:
        """The URL holds the password, so it is a secret itself; CloudFormation puts it together."""
        generated = self.database.secret
        assert generated is not None
        password = generated.secret_value_from_json("password").unsafe_unwrap()
        host = self.database.db_instance_endpoint_address
        url = Fn.join("", ["postgresql://", USER, ":", password, "@", host, f":{POSTGRES}/headway?sslmode=require"])
        return self._put_together("StoreUrl", "HEADWAY_STORE of the services", url)

    def _broker(self, network: Network, options: Options) -> mq.CfnBroker:
        subnets = network.vpc.select_subnets(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED).subnet_ids
        cluster = options.multi_az
        return mq.CfnBroker(
            self,
            "Broker",
            broker_name=f"{Fn.ref('AWS::StackName')}-bus",
            engine_type="RABBITMQ",
            engine_version="3.13",
            host_instance_type="mq.m5.large" if cluster else "mq.t3.micro",
            deployment_mode="CLUSTER_MULTI_AZ" if cluster else "SINGLE_INSTANCE",
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
            subnet_ids=subnets if cluster else subnets[:1],
            security_groups=[network.broker.security_group_id],
            encryption_options=mq.CfnBroker.EncryptionOptionsProperty(
                use_aws_owned_key=False, kms_key_id=self.key.key_arn
            ),
            logs=mq.CfnBroker.LogListProperty(general=True),
            users=[
                mq.CfnBroker.UserProperty(username=USER, password=self.broker_password.secret_value.unsafe_unwrap())
            ],
        )

    def _bus_url(self) -> secrets.Secret:
        endpoint = Fn.select(0, self.broker.attr_amqp_endpoints)
        host = Fn.select(1, Fn.split("://", endpoint))
        password = self.broker_password.secret_value.unsafe_unwrap()
        url = Fn.join("", ["amqps://", USER, ":", password, "@", host, "/"])
        return self._put_together("BusUrl", "HEADWAY_BUS of the services", url)

    def _bucket(self) -> s3.Bucket:
        return s3.Bucket(
            self,
            "Output",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.key,
            bucket_key_enabled=True,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=RemovalPolicy.RETAIN,
            lifecycle_rules=[s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(2))],
        )

    def _secret(self, name: str, *, length: int) -> secrets.Secret:
        return secrets.Secret(
            self,
            name,
            encryption_key=self.key,
            generate_secret_string=secrets.SecretStringGenerator(password_length=length, exclude_punctuation=True),
        )

    def _vault_key(self) -> secrets.Secret:
        """32 random bytes as hexadecimal digits: of all characters only these are left to choose from."""
        return secrets.Secret(
            self,
            "VaultKey",
            encryption_key=self.key,
            generate_secret_string=secrets.SecretStringGenerator(
                password_length=64,
                exclude_punctuation=True,
                exclude_uppercase=True,
                exclude_characters="ghijklmnopqrstuvwxyz",
            ),
        )

    def _put_together(self, name: str, description: str, value: str) -> secrets.Secret:
        return secrets.Secret(
            self,
            name,
            description=description,
            encryption_key=self.key,
            secret_string_value=SecretValue.unsafe_plain_text(value),
        )
