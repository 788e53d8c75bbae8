"""The tables of settings: typed access, what every declaration must have, resolution of topic settings."""

from typing import Any, get_type_hints

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.config import BrokerConfig, BrokerSettings, ClientMetricsConfig, GroupConfig, LogConfig, Settings
from kaspar.config.declaration import Setting
from kaspar.config.kinds import ConfigType
from kaspar.config.topic import validate_topic_overrides
from kaspar.config.units import GIB, HOUR_MS, MIB
from scripts import generate_reference

TABLES: list[type[Settings]] = [BrokerConfig, LogConfig, GroupConfig, ClientMetricsConfig]
ALL = [pytest.param(table, setting, id=name) for table in TABLES for name, setting in table.declared.items()]
PYTHON_TYPES = {
    ConfigType.BOOLEAN: bool,
    ConfigType.STRING: str,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.LIST: tuple[str, ...],
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: str,
}


@pytest.mark.parametrize(("table", "setting"), ALL)
def test_a_declaration_is_whole(table: type[Settings], setting: Setting) -> None:
    assert setting.doc.endswith(".")
    assert setting.not_honoured == "" or setting.not_honoured.endswith(".")
    if setting.default is not None:
        assert setting.parse(setting.format(setting.default) or "") == setting.default
    declared = get_type_hints(table)[setting.attribute]
    kind = PYTHON_TYPES[setting.kind.code]
    assert declared == (kind | None if setting.default is None else kind)


def test_every_broker_synonym_is_a_broker_setting() -> None:
    for declaration in (*LogConfig.declared.values(), *GroupConfig.declared.values()):
        for synonym in declaration.synonyms:
            assert synonym.name in BrokerConfig.declared


def test_topic_defaults_are_the_brokers() -> None:
    assert LogConfig.of(BrokerConfig.of({}), {}) == LogConfig.defaults()


def test_a_topic_overrides_the_broker() -> None:
    broker = BrokerConfig.of({"log.segment.bytes": str(2 * MIB), "log.cleanup.policy": "compact"})
    config = LogConfig.of(broker, {"segment.bytes": str(3 * MIB)})
    assert config.segment_bytes == 3 * MIB
    assert config.cleanup_policy == ("compact",)
    assert config.max_message_bytes == 1 * MIB + 12


@pytest.mark.parametrize(
    ("values", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "1"}, HOUR_MS),
        ({"log.retention.hours": "1", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "5", "log.retention.ms": "7"}, 7),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-5"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_a_time_counts(values: dict[str, str], retention_ms: int) -> None:
    assert LogConfig.of(BrokerConfig.of(values), {}).retention_ms == retention_ms


def test_flush_ms_falls_back_to_the_scheduler_interval() -> None:
    assert LogConfig.of(BrokerConfig.of({"log.flush.scheduler.interval.ms": "50"}), {}).flush_ms == 50
    both = {"log.flush.scheduler.interval.ms": "50", "log.flush.interval.ms": "9"}
    assert LogConfig.of(BrokerConfig.of(both), {}).flush_ms == 9


def test_internal_segment_bytes_goes_below_the_bound_and_is_not_described() -> None:
    settings = BrokerSettings.of({})
    overrides = {"internal.segment.bytes": "100"}
    validate_topic_overrides(settings.config, overrides)
    assert LogConfig.of(settings.config, overrides).segment_bytes == 100
    described = {entry.name: entry.value for entry in settings.describe_topic(overrides)}
    assert "internal.segment.bytes" not in described
    assert described["segment.bytes"] == str(1 * GIB)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"segment.bytes": "abc"}, "Invalid value abc for configuration segment.bytes: Not a number of type INT"),
        (
            {"segment.bytes": "1"},
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"cleanup.policy": "compact,foo"},
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            {"compression.gzip.level": "0"},
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            {"compression.lz4.level": "44"},
            "Invalid value 44 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            {"min.cleanable.dirty.ratio": "2"},
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            {"leader.replication.throttled.replicas": "foo"},
            "Invalid value [foo] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        ({"foo": "1", "bar": "2"}, "Unknown topic config name: bar"),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_wrong_topic_settings_are_refused_in_kafkas_words(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        validate_topic_overrides(BrokerConfig.of({}), overrides)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "overrides",
    [
        {"cleanup.policy": ""},
        {"retention.ms": "-1", "retention.bytes": "-5"},
        {"unclean.leader.election.enable": "TRUE"},
        {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "0:1,1:2"},
    ],
)
def test_what_kafka_takes_is_taken(overrides: dict[str, str]) -> None:
    validate_topic_overrides(BrokerConfig.of({}), overrides)


def test_settings_are_frozen_comparable_and_keep_secrets() -> None:
    config = BrokerConfig.of({"ssl.key.password": "secret", "num.partitions": "3"})
    attribute = "num_partitions"
    with pytest.raises(AttributeError, match="frozen"):
        setattr(config, attribute, 4)
    assert config == BrokerConfig.of({"num.partitions": "3", "ssl.key.password": "secret"})
    assert hash(config) == hash(BrokerConfig.of({"num.partitions": "3", "ssl.key.password": "secret"}))
    assert config != BrokerConfig.of({"num.partitions": "3"})
    assert "secret" not in repr(config)
    assert "num_partitions=3" in repr(config)
    stranger: dict[str, Any] = {"no_such": 1}
    with pytest.raises(TypeError, match="no_such"):
        BrokerConfig(**stranger)


def test_the_reference_pages_are_current() -> None:
    for name, text in generate_reference.pages().items():
        page = generate_reference.PAGES / name
        assert page.read_text(encoding="utf-8") == text, f"{name} is old: run 'make generate'"


def test_every_reference_page_of_a_command_is_of_a_command() -> None:
    found = {page.name for page in (generate_reference.PAGES / "commands").iterdir()}
    assert found == {name.removeprefix("commands/") for name in generate_reference.pages() if "/" in name}
