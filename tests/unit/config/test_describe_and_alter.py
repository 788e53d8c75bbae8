"""Dynamic settings: effective values, DescribeConfigs, and what can change while running."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config import (
    AlterOperation,
    BrokerConfig,
    BrokerSettings,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    LogConfig,
    apply_operation,
    validate_dynamic,
)

STATIC = {"node.id": "1", "log.retention.hours": "24", "log.segment.bytes": "2097152", "ssl.key.password": "hunter2"}


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [each for each in entries if each.name == name]
    return found


def test_dynamic_values_come_before_static_ones() -> None:
    settings = BrokerSettings.of(STATIC)
    cluster = settings.with_dynamic(default={"log.segment.bytes": "3000000"}, broker={})
    assert cluster.config.log_segment_bytes == 3_000_000
    own = settings.with_dynamic(default={"log.segment.bytes": "3000000"}, broker={"log.segment.bytes": "4000000"})
    assert own.config.log_segment_bytes == 4_000_000
    described = entry(own.describe_broker(), "log.segment.bytes")
    assert described.value == "4000000"
    assert described.source is ConfigSource.DYNAMIC_BROKER_CONFIG
    assert described.synonyms == (
        ConfigSynonym("log.segment.bytes", "4000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "3000000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "2097152", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    )
    assert not described.read_only
    assert not described.is_default


def test_dynamic_retention_comes_before_static_hours() -> None:
    settings = BrokerSettings.of(STATIC).with_dynamic(default={"log.retention.ms": "5000"}, broker={})
    assert LogConfig.of(settings.config, {}).retention_ms == 5000
    described = entry(settings.describe_topic({}), "retention.ms")
    assert described.value == "5000"
    assert described.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def test_topic_setting_has_its_source_and_synonyms() -> None:
    entries = BrokerSettings.of(STATIC).describe_topic({"segment.bytes": " 3000000 "})
    own = entry(entries, "segment.bytes")
    assert (own.value, own.source, own.type) == ("3000000", ConfigSource.TOPIC_CONFIG, ConfigType.INT)
    assert own.synonyms == (
        ConfigSynonym("segment.bytes", "3000000", ConfigSource.TOPIC_CONFIG),
        ConfigSynonym("log.segment.bytes", "2097152", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    )
    policy = entry(entries, "cleanup.policy")
    assert (policy.value, policy.is_default) == ("delete", True)
    assert policy.synonyms == (ConfigSynonym("log.cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG),)
    # As in Kafka: a coarser unit gives the value, and is not listed as a synonym.
    retention = entry(entries, "retention.ms")
    assert (retention.value, retention.synonyms) == ("86400000", ())
    assert len(entries) == 33


def test_values_of_secrets_and_unknown_settings_are_hidden() -> None:
    settings = BrokerSettings.of({**STATIC, "my.plugin.password": "hunter2"})
    entries = settings.describe_broker()
    for name in ("ssl.key.password", "my.plugin.password"):
        described = entry(entries, name)
        assert described.sensitive
        assert described.value is None
        assert all(synonym.value is None for synonym in described.synonyms)
    assert all("hunter2" not in repr(described) for described in entries)


def test_group_and_subscription_settings_name_their_source() -> None:
    settings = BrokerSettings.of({"group.consumer.heartbeat.interval.ms": "6000"})
    group = settings.describe_group({"consumer.session.timeout.ms": "50000"})
    own = entry(group, "consumer.session.timeout.ms")
    assert own.synonyms == (
        ConfigSynonym("consumer.session.timeout.ms", "50000", ConfigSource.GROUP_CONFIG),
        ConfigSynonym("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT_CONFIG),
    )
    inherited = entry(group, "consumer.heartbeat.interval.ms")
    assert (inherited.value, inherited.source) == ("6000", ConfigSource.STATIC_BROKER_CONFIG)
    alone = entry(group, "share.isolation.level")
    assert alone.synonyms == (ConfigSynonym("share.isolation.level", "read_uncommitted", ConfigSource.DEFAULT_CONFIG),)
    subscription = settings.describe_client_metrics({"metrics": "a,b"})
    assert entry(subscription, "metrics").source is ConfigSource.CLIENT_METRICS_CONFIG
    assert (entry(subscription, "interval.ms").value, entry(subscription, "interval.ms").synonyms) == ("300000", ())


def test_either_name_of_the_node_id_is_described() -> None:
    entries = BrokerSettings.of({"node.id": "3"}).describe_broker()
    assert entry(entries, "node.id").value == entry(entries, "broker.id").value == "3"
    assert entry(entries, "broker.id").source is ConfigSource.STATIC_BROKER_CONFIG


def test_a_default_that_kafka_does_not_have_is_no_synonym() -> None:
    entries = BrokerSettings.of({}).describe_broker()
    assert (entry(entries, "node.id").value, entry(entries, "node.id").synonyms) == ("1", ())
    assert (entry(entries, "log.dirs").value, entry(entries, "log.dirs").synonyms) == (None, ())
    assert entry(entries, "log.dir").value == "/tmp/kafka-logs"


def test_a_null_default_has_no_synonym() -> None:
    rack = entry(BrokerSettings.of(STATIC).describe_broker(), "broker.rack")
    assert (rack.value, rack.synonyms, rack.source, rack.read_only) == (None, (), ConfigSource.DEFAULT_CONFIG, True)


def test_the_cluster_default_shows_only_what_is_set_there() -> None:
    settings = BrokerSettings.of(STATIC).with_dynamic(
        default={"max.connections": "9"}, broker={"max.connections": "8", "message.max.bytes": "7"}
    )
    (described,) = settings.describe_cluster_default()
    assert (described.name, described.value) == ("max.connections", "9")
    assert described.synonyms == (ConfigSynonym("max.connections", "9", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)


def test_stored_values_that_do_not_work_are_left_out() -> None:
    settings = BrokerSettings.of(STATIC).with_dynamic(
        default={"max.connections": "many", "message.max.bytes": "7"}, broker={}
    )
    assert settings.config.message_max_bytes == 7
    assert settings.config.max_connections == BrokerConfig.declared["max.connections"].default
    together = BrokerSettings.of(STATIC).with_dynamic(default={"log.retention.ms": "0"}, broker={})
    assert together.config == BrokerSettings.of(STATIC).config


@pytest.mark.parametrize(
    ("operation", "operand", "result"),
    [
        (AlterOperation.SET, "compact", {"cleanup.policy": "compact", "x": "1"}),
        (AlterOperation.DELETE, None, {"x": "1"}),
        (AlterOperation.APPEND, "compact,delete", {"cleanup.policy": "delete,compact", "x": "1"}),
        (AlterOperation.SUBTRACT, "delete", {"cleanup.policy": "", "x": "1"}),
        (AlterOperation.SUBTRACT, "compact", {"cleanup.policy": "delete", "x": "1"}),
    ],
)
def test_the_four_operations(operation: AlterOperation, operand: str | None, result: dict[str, str]) -> None:
    before = {"cleanup.policy": "delete", "x": "1"}
    assert apply_operation(LogConfig.declared, before, "cleanup.policy", operation, operand) == result
    assert before == {"cleanup.policy": "delete", "x": "1"}


def test_append_starts_from_the_default() -> None:
    appended = apply_operation(LogConfig.declared, {}, "cleanup.policy", AlterOperation.APPEND, "compact")
    assert appended == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize("operation", [AlterOperation.APPEND, AlterOperation.SUBTRACT])
@pytest.mark.parametrize("name", ["segment.bytes", "foo"])
def test_only_lists_are_appended_to(operation: AlterOperation, name: str) -> None:
    sentence = f"Can't {operation.name} to key {name} because its type is not LIST."
    with pytest.raises(InvalidSetting) as refused:
        apply_operation(LogConfig.declared, {}, name, operation, "1")
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("values", "per_broker", "sentence"),
    [
        ({"node.id": "1", "log.dirs": "/x"}, True, "Cannot update these configs dynamically: [log.dirs, node.id]"),
        ({"log.retention.hours": "1"}, True, "Cannot update these configs dynamically: [log.retention.hours]"),
        (
            {"ssl.keystore.location": "/x"},
            True,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            {"listeners": "PLAINTEXT://:1"},
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            {"max.connections": "x"},
            True,
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"log.retention.ms": "0"},
            True,
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
    ],
)
def test_read_only_settings_cannot_change_while_running(
    values: dict[str, str], per_broker: bool, sentence: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        validate_dynamic(BrokerSettings.of(STATIC), values, per_broker=per_broker)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "name", ["sasl.kerberos.min.time.before.relogin", "ssl.client.auth", "principal.builder.class"]
)
def test_security_settings_that_are_no_listeners_keys_change_for_the_whole_broker(name: str) -> None:
    declaration = BrokerConfig.declared[name]
    value = declaration.kind.format(declaration.default)
    validate_dynamic(BrokerSettings.of(STATIC), {name: value}, per_broker=True)
    with pytest.raises(InvalidSetting, match="broker id must be specified"):
        validate_dynamic(BrokerSettings.of(STATIC), {name: value}, per_broker=False)


def test_dynamic_settings_can_change_while_running() -> None:
    settings = BrokerSettings.of(STATIC)
    validate_dynamic(settings, {"max.connections": "5", "unknown.plugin.setting": "x"}, per_broker=True)
    validate_dynamic(settings, {"log.retention.ms": "100000", "min.insync.replicas": "2"}, per_broker=False)
