"""The settings of a topic, by Kafka's names. What a topic does not set comes from the broker."""

from collections.abc import Mapping
from typing import Any, Self

from kaspar.base.errors import InvalidSetting
from kaspar.config.checks import at_least, between, between_or, list_of, one_of, throttled_replicas
from kaspar.config.declaration import Settings, Synonym, parse_values, setting
from kaspar.config.kinds import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_LONG, STRING
from kaspar.config.reasons import NO_TIERS
from kaspar.config.units import DAY_MS, GIB, HOUR_MS, KIB, MIB, MINUTE_MS


def _from(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


class LogConfig(Settings):
    """The settings of one topic: its own values, and the broker's where it has none."""

    cleanup_policy: tuple[str, ...] = setting(
        LIST,
        ("delete",),
        list_of("compact", "delete"),
        synonyms=_from("log.cleanup.policy"),
        doc="What happens to old segments: `delete` removes them by age and size, `compact` keeps the last record of "
        "each key. Both may be given. Records without a key are refused where it contains `compact`.",
    )
    compression_type: str = setting(
        STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=_from("compression.type"),
        doc="How batches are compressed on disk. `producer` keeps what the producer chose; another value re-compresses "
        "batches that differ.",
    )
    compression_gzip_level: int = setting(
        INT,
        -1,
        between_or(1, 9, -1),
        synonyms=_from("compression.gzip.level"),
        doc="The level used when re-compressing to gzip.",
    )
    compression_lz4_level: int = setting(
        INT,
        9,
        between(1, 17),
        synonyms=_from("compression.lz4.level"),
        doc="The level used when re-compressing to lz4.",
    )
    compression_zstd_level: int = setting(
        INT,
        3,
        between(-131072, 22),
        synonyms=_from("compression.zstd.level"),
        doc="The level used when re-compressing to zstd.",
    )
    delete_retention_ms: int = setting(
        LONG,
        DAY_MS,
        at_least(0),
        synonyms=_from("log.cleaner.delete.retention.ms"),
        doc="How long the tombstones of a compacted topic are kept, so that readers from the start see the deletes.",
    )
    file_delete_delay_ms: int = setting(
        LONG,
        MINUTE_MS,
        at_least(0),
        synonyms=_from("log.segment.delete.delay.ms"),
        doc="How long a removed file waits before it is unlinked.",
    )
    flush_messages: int = setting(
        LONG,
        MAX_LONG,
        at_least(1),
        synonyms=_from("log.flush.interval.messages"),
        doc="How many records may be unsynced before the log is synced to disk. With 1, an append is "
        "acknowledged only after its sync.",
    )
    flush_ms: int = setting(
        LONG,
        MAX_LONG,
        at_least(0),
        synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        doc="How long a record may be unsynced before the log is synced to disk.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        LIST,
        (),
        throttled_replicas("follower.replication.throttled.replicas"),
        doc="The replicas whose copying is throttled on the follower's side, or `*` for all.",
    )
    index_interval_bytes: int = setting(
        INT,
        4 * KIB,
        at_least(0),
        synonyms=_from("log.index.interval.bytes"),
        doc="The approximate number of bytes between two entries of the offset index.",
    )
    internal_segment_bytes: int | None = setting(
        INT, None, internal=True, doc="Takes the place of `segment.bytes` without its lower bound. For tests."
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        LIST,
        (),
        throttled_replicas("leader.replication.throttled.replicas"),
        doc="The replicas whose copying is throttled on the leader's side, or `*` for all.",
    )
    local_retention_bytes: int = setting(
        LONG,
        -2,
        at_least(-2),
        synonyms=_from("log.local.retention.bytes"),
        not_honoured=NO_TIERS,
        doc="With tiered storage, how many bytes of a partition stay on local disk. -2 means `retention.bytes`.",
    )
    local_retention_ms: int = setting(
        LONG,
        -2,
        at_least(-2),
        synonyms=_from("log.local.retention.ms"),
        not_honoured=NO_TIERS,
        doc="With tiered storage, how long segments stay on local disk. -2 means `retention.ms`.",
    )
    max_compaction_lag_ms: int = setting(
        LONG,
        MAX_LONG,
        at_least(1),
        synonyms=_from("log.cleaner.max.compaction.lag.ms"),
        doc="The longest time that a record may stay uncompacted.",
    )
    max_message_bytes: int = setting(
        INT,
        1 * MIB + 12,
        at_least(0),
        synonyms=_from("message.max.bytes"),
        doc="The largest record batch that is accepted, after compression if it is compressed.",
    )
    message_timestamp_after_max_ms: int = setting(
        LONG,
        HOUR_MS,
        at_least(0),
        synonyms=_from("log.message.timestamp.after.max.ms"),
        doc="How far a record's timestamp may lie after the broker's clock. Applies to CreateTime.",
    )
    message_timestamp_before_max_ms: int = setting(
        LONG,
        MAX_LONG,
        at_least(0),
        synonyms=_from("log.message.timestamp.before.max.ms"),
        doc="How far a record's timestamp may lie before the broker's clock. Applies to CreateTime.",
    )
    message_timestamp_type: str = setting(
        STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        synonyms=_from("log.message.timestamp.type"),
        doc="Whether a record keeps the producer's timestamp or gets the broker's time of the append.",
    )
    min_cleanable_dirty_ratio: float = setting(
        DOUBLE,
        0.5,
        between(0.0, 1.0),
        synonyms=_from("log.cleaner.min.cleanable.ratio"),
        doc="The share of a log that must be uncompacted before the cleaner compacts it.",
    )
    min_compaction_lag_ms: int = setting(
        LONG,
        0,
        at_least(0),
        synonyms=_from("log.cleaner.min.compaction.lag.ms"),
        doc="The shortest time that a record stays uncompacted.",
    )
    min_insync_replicas: int = setting(
        INT,
        1,
        at_least(1),
        synonyms=_from("min.insync.replicas"),
        doc="How many replicas must be in sync for a produce request with acks=all to be accepted.",
    )
    preallocate: bool = setting(
        BOOLEAN,
        False,
        synonyms=_from("log.preallocate"),
        doc="Whether a new segment file is allocated on disk in its full size.",
    )
    remote_log_copy_disable: bool = setting(
        BOOLEAN, False, not_honoured=NO_TIERS, doc="With tiered storage, stops copying segments to the remote tier."
    )
    remote_log_delete_on_disable: bool = setting(
        BOOLEAN,
        False,
        not_honoured=NO_TIERS,
        doc="Whether the remote data goes when tiered storage is switched off for the topic.",
    )
    remote_storage_enable: bool = setting(
        BOOLEAN,
        False,
        not_honoured=NO_TIERS,
        doc="Enables tiered storage for the topic. Rejected, since it is not supported yet.",
    )
    retention_bytes: int = setting(
        LONG,
        -1,
        synonyms=_from("log.retention.bytes"),
        doc="The size a partition may reach before its oldest segments are deleted. -1 sets no limit.",
    )
    retention_ms: int = setting(
        LONG,
        7 * DAY_MS,
        at_least(-1),
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", MINUTE_MS),
            Synonym("log.retention.hours", HOUR_MS),
        ),
        doc="The age at which segments are deleted, counted from their largest timestamp. -1 sets no limit.",
    )
    segment_bytes: int = setting(
        INT,
        1 * GIB,
        at_least(1 * MIB),
        synonyms=_from("log.segment.bytes"),
        doc="An append that would make the segment larger starts a new one.",
    )
    segment_index_bytes: int = setting(
        INT,
        10 * MIB,
        at_least(4),
        synonyms=_from("log.index.size.max.bytes"),
        doc="The largest size of an index file; a full index starts a new segment.",
    )
    segment_jitter_ms: int = setting(
        LONG,
        0,
        at_least(0),
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)),
        doc="Up to how much earlier than `segment.ms` a segment is rolled, at random, so that not all roll at once.",
    )
    segment_ms: int = setting(
        LONG,
        7 * DAY_MS,
        at_least(1),
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
        doc="The age at which a segment is rolled even if it is not full, so that retention can delete it.",
    )
    unclean_leader_election_enable: bool = setting(
        BOOLEAN,
        False,
        synonyms=_from("unclean.leader.election.enable"),
        doc="Whether a replica that lacks committed records may lead when no other is left. With one replica: whether "
        "a partition whose log is lost is recreated empty.",
    )

    @classmethod
    def defaults(cls) -> Self:
        return cls()

    @classmethod
    def of(cls, broker: Settings, overrides: Mapping[str, str]) -> Self:
        """The topic's own values, else the broker's. `overrides` were validated when they were stored."""
        values = resolve(broker, overrides)
        if values["internal_segment_bytes"] is not None:
            values["segment_bytes"] = values["internal_segment_bytes"]
        return cls(**values)


def resolve(broker: Settings, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Every topic setting by attribute name."""
    values = {declaration.attribute: _broker_default(broker, name) for name, declaration in LogConfig.declared.items()}
    values.update(parse_values(LogConfig.declared, overrides))
    return values


def _broker_default(broker: Settings, name: str) -> Any:
    declaration = LogConfig.declared[name]
    for synonym in declaration.synonyms:
        value = vars(broker)[synonym.name.replace(".", "_")]
        if value is None:
            continue
        if synonym.factor == 1:
            return value
        # Any negative retention means no limit; multiplied, it would be below the lowest valid value.
        return value * synonym.factor if value >= 0 else -1
    return declaration.default


def validate_topic_overrides(broker: Settings, overrides: Mapping[str, str]) -> None:
    """Validate the settings of a topic. Raises InvalidSetting with Kafka's message."""
    for name in sorted(overrides):
        if name not in LogConfig.declared:
            raise InvalidSetting(f"Unknown topic config name: {name}")
    values = resolve(broker, overrides)
    shortest, longest = values["min_compaction_lag_ms"], values["max_compaction_lag_ms"]
    if shortest > longest:
        raise InvalidSetting(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )
    if values["remote_storage_enable"]:
        raise InvalidSetting(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
