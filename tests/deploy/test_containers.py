"""Image, compose file and Kubernetes manifests, as far as they can be checked without a container engine."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.vault.envelope import KEY_SIZE
from headway.vault.keys import decode
from tests.deploy.commands import read_as_headway_does

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
KUBERNETES = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
COMPOSE = [ROOT / "compose.yaml", ROOT / "compose.dev.yaml"]
OWN = {"api", "scheduler", "worker"}


def run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def workloads() -> list[dict[str, Any]]:
    return [each for path in KUBERNETES for each in documents(path) if each["kind"] == "Deployment"]


def command_lines() -> list[list[str]]:
    """What the containers of our image are started with, wherever they run."""
    composed = [service for path in COMPOSE for service in documents(path)[0]["services"].values()]
    ours = [service["command"] for service in composed if "command" in service and _ours(service)]
    pods = [each["spec"]["template"]["spec"] for each in workloads()]
    containers = [each for pod in pods for each in (*pod["initContainers"], *pod["containers"])]
    return [*ours, *(container["args"] for container in containers)]


def _ours(service: dict[str, Any]) -> bool:
    """An overlay names no image: it changes services of ours only."""
    return bool(service.get("image", "headway") == "headway")


@pytest.mark.parametrize("arguments", command_lines(), ids=" ".join)
def test_the_command_takes_what_containers_are_started_with(arguments: list[str]) -> None:
    read_as_headway_does(arguments)


def test_processes_are_asked_for_their_health_where_they_tell_it() -> None:
    """Not for their metrics: that page is there for as long as the process is, whether or not it does anything."""
    services = documents(COMPOSE[0])[0]["services"]
    assert all("/healthz" in str(services[name]["healthcheck"]) for name in ("scheduler", "worker"))
    for workload in workloads():
        [container] = workload["spec"]["template"]["spec"]["containers"]
        asked = [container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")]
        # People need the API most when claiming stalls.
        ready = "/healthz" if container["name"] == "api" else "/readyz"
        assert asked == ["/healthz", "/healthz", ready]


def test_the_dockerfile_is_clean() -> None:
    run(BIN / "hadolint", "Dockerfile")


def test_the_image_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 10001:10001"


def test_compose_files_fit_the_specification() -> None:
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE)


def test_our_containers_may_write_only_where_they_must() -> None:
    services = documents(COMPOSE[0])[0]["services"]
    for name in OWN | {"migrate"}:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]


def test_nothing_is_published_beyond_loopback() -> None:
    services = documents(COMPOSE[0])[0]["services"]
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_file_that_compose_mounts_is_there() -> None:
    services = documents(COMPOSE[0])[0]["services"]
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])]
    for source in (mount for mount in mounts if mount.startswith("./")):
        assert (ROOT / source).exists(), source


def test_every_data_source_of_the_dashboards_is_provisioned_and_there() -> None:
    [provisioned] = documents(ROOT / "deploy/grafana/provisioning/datasources/headway.yaml")
    services = documents(COMPOSE[0])[0]["services"]
    hosts = {source["uid"]: source["url"].split("/")[2].split(":")[0] for source in provisioned["datasources"]}
    text = "".join(path.read_text() for path in (ROOT / "deploy/grafana").glob("*.json"))
    used = set(re.findall(r'"uid": "(\w+)"', text)) & {"prometheus", "loki", "tempo"}
    used |= set(re.findall(r'\\"datasource\\": \\"(\w+)\\"', text))
    assert {"prometheus", "loki", "tempo"} <= used
    assert used <= hosts.keys()
    assert set(hosts.values()) <= services.keys()
    receivers = documents(ROOT / "deploy/tempo/tempo.yaml")[0]["distributor"]["receivers"]["otlp"]["protocols"]
    endpoint = services["worker"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert endpoint == f"http://tempo:{receivers['http']['endpoint'].rpartition(':')[2]}"
    assert "headway[all,otlp]" in (ROOT / "Dockerfile").read_text(), "what sends them there"
    assert {services[name]["environment"]["OTEL_SERVICE_NAME"] for name in OWN} == {f"headway-{name}" for name in OWN}


def test_yaml_is_well_formed() -> None:
    rules = "{extends: relaxed, rules: {line-length: {max: 130}}}"
    run(
        BIN / "yamllint",
        "--strict",
        "-d",
        rules,
        *COMPOSE,
        *KUBERNETES,
        ROOT / "deploy/prometheus",
        ROOT / "deploy/tempo",
        ROOT / "deploy/grafana/provisioning",
    )


@pytest.mark.parametrize("path", [path for path in KUBERNETES if path.stem != "kustomization"], ids=lambda p: p.stem)
def test_manifests_fit_their_schemas(path: Path, tmp_path: Path) -> None:
    # KEDA's own kinds are not in Kubernetes' schemas.
    known = [each for each in documents(path) if each["apiVersion"] != "keda.sh/v1alpha1"]
    copy = tmp_path / path.name
    copy.write_text(yaml.safe_dump_all(known))
    run(BIN / "kubernetes-validate", "--strict", "--quiet", copy)


def test_the_vault_takes_the_key_that_the_example_prescribes() -> None:
    """And the command in the docs makes it so."""
    [secret] = documents(ROOT / "deploy/kubernetes/secret.example.yaml")
    assert secret["stringData"]["HEADWAY_SECRET_KEY"] == "what `headway secrets key` prints"
    assert '--from-literal=HEADWAY_SECRET_KEY="$(headway secrets key)"' in (ROOT / "docs/deploying.md").read_text()
    command = [sys.executable, "-m", "headway", "secrets", "key"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert len(decode(printed.strip(), "the example").secret) == KEY_SIZE


def test_every_pod_brings_the_schema_up_to_date_before_it_needs_it() -> None:
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        [process], [migrate] = pod["containers"], pod["initContainers"]
        assert (migrate["args"], migrate["envFrom"]) == (["migrate"], process["envFrom"])


def test_applying_again_does_not_undo_what_autoscaling_decided() -> None:
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in documents(ROOT / "deploy/kubernetes/autoscaling.yaml")}
    for workload in workloads():
        assert ("replicas" in workload["spec"]) is (workload["metadata"]["name"] not in scaled)


def test_kustomization_names_every_manifest() -> None:
    [own] = documents(ROOT / "deploy/kubernetes/kustomization.yaml")
    there = {path.name for path in KUBERNETES} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(own["resources"]) == there


def test_pods_are_as_restricted_as_their_namespace_asks() -> None:
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("place", ["kubernetes", "compose"])
def test_a_worker_is_given_longer_than_its_own_grace(place: str) -> None:
    if place == "compose":
        service = documents(COMPOSE[0])[0]["services"]["worker"]
        command, seconds = service["command"], int(service["stop_grace_period"].removesuffix("s"))
    else:
        [worker] = [each for each in workloads() if each["metadata"]["name"] == "headway-worker"]
        pod = worker["spec"]["template"]["spec"]
        command, seconds = pod["containers"][0]["args"], pod["terminationGracePeriodSeconds"]
    assert seconds > int(command[command.index("--grace") + 1])
