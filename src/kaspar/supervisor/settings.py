"""The settings of the brokers of a cluster on one machine: those that follow from the plan, suitable defaults, and
overrides.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.config import BrokerSettings
from kaspar.supervisor.plan import HOST, BrokerPlan, ClusterPlan

SESSION_TIMEOUT_MS: Final = 6_000
"""For a process that hangs: a process that exits is noticed at once, and the network of a single machine is not
slow."""

CONNECTION_TIMEOUT_MS: Final = 60_000
"""Brokers start at the same time as ZooKeeper, and Java starts slowly on a busy machine."""

LOGS: Final = "logs"
"""Next to each broker's data directory."""

MOST_REPLICAS: Final = 3
DIFFERENT_FOR_EACH_BROKER: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "kaspar.log.dir",
        "kaspar.log.file",
        "kaspar.metrics.listener",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "zookeeper.connect",
    }
)
_HEAD: Final = "# Written at every start by 'kaspar up'. To change a setting, start it with --override NAME=VALUE.\n"
SERVICE_HEAD: Final = "# Written at every start by 'kaspar up'.\n"


def broker_settings(
    plan: ClusterPlan,
    broker: BrokerPlan,
    data_dir: Path,
    overrides: Mapping[str, str],
    *,
    with_metrics: bool = True,
    security: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The settings of one broker. `security` are those of a secured cluster."""
    values = {
        "node.id": str(broker.id),
        "listeners": f"PLAINTEXT://{HOST}:{broker.port}",
        "log.dirs": str(data_dir),
        "kaspar.log.dir": str(data_dir.with_name(LOGS)),
        "kaspar.metrics.listener": broker.metrics_address if with_metrics else "",
        "group.initial.rebalance.delay.ms": "0",  # as in Kafka's sample settings: no wait for more members
        **replication_settings(len(plan.brokers)),
    }
    if plan.zookeepers:
        values |= {
            "zookeeper.connect": plan.zookeeper_connect,
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "zookeeper.connection.timeout.ms": str(CONNECTION_TIMEOUT_MS),
        }
    for name in security or {}:
        if name in overrides:
            raise InvalidSetting(f"--override {name} conflicts with --secure")
    return {**values, **(security or {}), **overrides}


def replication_settings(brokers: int) -> dict[str, str]:
    """The settings that depend on the number of brokers."""
    replicas = min(MOST_REPLICAS, brokers)
    in_sync = 2 if replicas == MOST_REPLICAS else 1
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
    }


def check_overrides(overrides: Mapping[str, str]) -> None:
    """Raise InvalidSetting for a setting that cannot be overridden."""
    for name in overrides:
        if name in DIFFERENT_FOR_EACH_BROKER:
            raise InvalidSetting(f"--override {name} is not possible: 'kaspar up' sets it for each broker")


def check_settings(values: Mapping[str, str]) -> None:
    """Raise the InvalidSetting with which the broker would fail to start."""
    if "," in values["log.dirs"]:
        raise InvalidSetting(f"{values['log.dirs']} contains a comma, which separates folders in log.dirs")
    BrokerSettings.of(values)


def properties_text(values: Mapping[str, str], head: str = _HEAD) -> str:
    """A settings file, in the syntax of Java properties."""
    return head + "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    value = value.replace("\\", "\\\\")
    return f"\\{value}" if value[:1] in (" ", "\t") else value
