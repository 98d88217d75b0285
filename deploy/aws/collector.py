"""A collector beside each process that writes its metrics to the managed Prometheus."""

from __future__ import annotations

import json

from aws_cdk import Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs

IMAGE = "public.ecr.aws/aws-observability/aws-otel-collector:v0.40.0"
PORTS = {"Api": 9100, "Scheduler": 9102, "Worker": 9101}
"""Where each process shows its metrics: on the loopback address, which the containers of a task share."""


def add_collector(
    task: ecs.FargateTaskDefinition, process: str, workspace: aps.CfnWorkspace, log_group: logs.ILogGroup
) -> None:
    """If it fails, the process goes on."""
    task.add_container(
        "Collector",
        image=ecs.ContainerImage.from_registry(IMAGE),
        environment={"AOT_CONFIG_CONTENT": json.dumps(_configuration(process, workspace))},
        essential=False,
        readonly_root_filesystem=True,
        logging=ecs.LogDrivers.aws_logs(stream_prefix="collector", log_group=log_group),
    )
    task.add_to_task_role_policy(
        iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[workspace.attr_arn]),
    )


def _configuration(process: str, workspace: aps.CfnWorkspace) -> dict[str, object]:
    scrape = {
        "job_name": "headway",
        "static_configs": [{"targets": [f"127.0.0.1:{PORTS[process]}"], "labels": {"process": process.lower()}}],
    }
    return {
        "extensions": {"sigv4auth": {"region": Stack.of(workspace).region, "service": "aps"}},
        "receivers": {"prometheus": {"config": {"global": {"scrape_interval": "15s"}, "scrape_configs": [scrape]}}},
        # Every task calls itself 127.0.0.1; its ARN tells its series from those of the others.
        "processors": {"resourcedetection": {"detectors": ["env", "ecs"]}},
        "exporters": {
            "prometheusremotewrite": {
                "endpoint": f"{workspace.attr_prometheus_endpoint}api/v1/remote_write",
                "auth": {"authenticator": "sigv4auth"},
                "resource_to_telemetry_conversion": {"enabled": True},
            }
        },
        "service": {
            "extensions": ["sigv4auth"],
            "pipelines": {
                "metrics": {
                    "receivers": ["prometheus"],
                    "processors": ["resourcedetection"],
                    "exporters": ["prometheusremotewrite"],
                }
            },
        },
    }
