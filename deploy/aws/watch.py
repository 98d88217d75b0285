"""What tells people that something is wrong, and the questions they then ask of the logs."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_elasticloadbalancingv2 as elb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from data import Data
from options import Options
from services import Services

from headway.observe.cloudwatch import NAMESPACE, OLDEST_DUE, WORKERS

QUERIES = {
    "one job": 'fields @timestamp, event, component, from, to | filter job_id = "…" | sort @timestamp',
    "failures": "fields @timestamp, job_id, correlation_id, component, trace_id "
    '| filter event = "job.state_changed" and to = "failed" | sort @timestamp desc',
    "errors": 'fields @timestamp, event, error | filter level = "error" | sort @timestamp desc',
    "lost leases": 'fields @timestamp, event, leases, jobs | filter event in ["worker.leases_lost", "duties.rescued"]',
}


class Watch(Construct):
    """Alarms and log queries."""

    def __init__(self, scope: Construct, name: str, *, data: Data, services: Services, options: Options) -> None:
        super().__init__(scope, name)
        self.topic = sns.Topic(self, "Alarms", master_key=data.key, enforce_ssl=True)
        self._let_alarms_through(data)
        if options.alarm_mail:
            self.topic.add_subscription(subscriptions.EmailSubscription(options.alarm_mail))
        self._alarm("Backlog", services.backlog(), above=options.backlog_per_worker * 10, minutes=15)
        self._alarm("OldestDueJob", _ours(OLDEST_DUE, "Maximum"), above=600, minutes=10)
        self._alarm("NoWorker", _ours(WORKERS, "Maximum"), below=1, minutes=3)
        self._alarm(
            "ApiErrors",
            services.group.metrics.http_code_target(
                elb.HttpCodeTarget.TARGET_5XX_COUNT, statistic="Sum", period=Duration.minutes(1)
            ),
            above=10,
            minutes=5,
        )
        self._alarm("DatabaseCpu", data.database.metric_cpu_utilization(), above=80, minutes=15)
        self._alarm("DatabaseSpace", data.database.metric_free_storage_space(), below=5 * 2**30, minutes=5)
        for title, query in QUERIES.items():
            logs.CfnQueryDefinition(
                self,
                f"Query {title}",
                name=f"headway/{title}",
                query_string=query,
                log_group_names=[services.log_group.log_group_name],
            )

    def _let_alarms_through(self, data: Data) -> None:
        """CloudWatch may publish, and use the key of what it publishes: a policy of our own replaces the usual one."""
        cloudwatch_itself = iam.ServicePrincipal("cloudwatch.amazonaws.com")
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[cloudwatch_itself],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        data.key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[cloudwatch_itself],
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                resources=["*"],
            )
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        *,
        above: float | None = None,
        below: float | None = None,
        minutes: int,
    ) -> None:
        compare = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            threshold=above if above is not None else (below or 0),
            comparison_operator=compare.GREATER_THAN_THRESHOLD if above is not None else compare.LESS_THAN_THRESHOLD,
            evaluation_periods=minutes,
            # No line from the scheduler is a fault too; the database and the load balancer speak only when asked.
            treat_missing_data=_missing(breaching=name == "NoWorker"),
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))


def _ours(name: str, statistic: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(namespace=NAMESPACE, metric_name=name, statistic=statistic, period=Duration.minutes(1))


def _missing(*, breaching: bool) -> cloudwatch.TreatMissingData:
    return cloudwatch.TreatMissingData.BREACHING if breaching else cloudwatch.TreatMissingData.NOT_BREACHING
