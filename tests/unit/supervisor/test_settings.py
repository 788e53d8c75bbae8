"""The settings files of the brokers of a cluster on one machine."""

from pathlib import Path

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config import BrokerConfig, load_settings, read_properties, warnings_about
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ZooKeeperPlan
from kaspar.supervisor.settings import (
    SESSION_TIMEOUT_MS,
    broker_settings,
    check_overrides,
    check_settings,
    properties_text,
)
from kaspar.zookeeper import write_config

DATA = Path("/data/c1/broker-2/data")


def cluster(brokers: int) -> ClusterPlan:
    servers = (ZooKeeperPlan(1, 2181, 2888, 3888),) if brokers > 1 else ()
    return ClusterPlan(tuple(BrokerPlan(n, 9091 + n, 9403 + n) for n in range(1, brokers + 1)), servers)


def settings(brokers: int, **overrides: str) -> BrokerConfig:
    plan = cluster(brokers)
    values = broker_settings(
        plan, plan.brokers[-1], DATA, {name.replace("_", "."): overrides[name] for name in overrides}
    )
    assert warnings_about(values) == [], "every name is known, and has an effect"
    return BrokerConfig.of(values)


@pytest.mark.parametrize(("brokers", "replicas", "min_in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_replicas_and_how_many_must_be_in_sync(brokers: int, replicas: int, min_in_sync: int) -> None:
    config = settings(brokers)
    assert config.default_replication_factor == replicas
    assert config.offsets_topic_replication_factor == replicas
    assert config.transaction_state_log_replication_factor == replicas
    assert config.min_insync_replicas == min_in_sync
    assert config.transaction_state_log_min_isr == min_in_sync


def test_each_broker_has_its_own_id_port_folder_and_page() -> None:
    config = settings(3)
    assert config.node_id == 3
    assert [(each.host, each.port) for each in config.endpoints] == [("127.0.0.1", 9094)]
    assert config.log_dirs == (str(DATA),)
    assert config.metrics_address == ("127.0.0.1", 9406)
    assert config.broker_rack is None


def test_only_brokers_of_a_cluster_use_zookeeper() -> None:
    assert settings(1).zookeeper_connect is None
    config = settings(3)
    assert config.zookeeper_connect == "127.0.0.1:2181"
    assert config.zookeeper_session_timeout_ms == 6000
    assert (config.zookeeper_connection_timeout_ms or 0) > config.zookeeper_session_timeout_ms


def test_override_has_precedence() -> None:
    assert settings(3, min_insync_replicas="1").min_insync_replicas == 1


def test_metrics_can_be_left_out() -> None:
    plan = cluster(1)
    values = broker_settings(plan, plan.brokers[0], DATA, {}, with_metrics=False)
    assert BrokerConfig.of(values).metrics_address is None


@pytest.mark.parametrize("name", ["node.id", "listeners", "log.dirs", "zookeeper.connect", "kaspar.metrics.listener"])
def test_override_of_what_differs_between_brokers_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"--override {name} is not possible: 'kaspar up' sets it for each broker"):
        check_overrides({"num.partitions": "3", name: "1"})


def test_override_with_an_invalid_value_is_refused_before_a_broker_starts() -> None:
    plan = cluster(3)
    with pytest.raises(InvalidSetting, match=r"num\.partitions"):
        check_settings(broker_settings(plan, plan.brokers[0], DATA, {"num.partitions": "none"}))


def test_folder_with_a_comma_is_refused() -> None:
    plan = cluster(1)
    with pytest.raises(InvalidSetting, match="contains a comma"):
        check_settings(broker_settings(plan, plan.brokers[0], Path("/data/a,b"), {}))


@pytest.mark.parametrize("value", ["C:\\logs\\new", "  two blanks", "a=b # c", "", "größe"])
def test_file_is_read_back_as_it_was_written(value: str) -> None:
    assert read_properties(properties_text({"one": value, "two": "2"})) == {"one": value, "two": "2"}


def test_a_session_has_at_least_six_ticks(tmp_path: Path) -> None:
    """As `Session.safe_until` requires: brokers count on their sessions for two thirds of the timeout."""
    values = load_settings(write_config(tmp_path).file)
    assert 6 * int(values["tickTime"]) <= SESSION_TIMEOUT_MS
