"""The options of a read, parsed once into a frozen value that is passed to every process of the query.

Names, defaults and precedence are those of Spark's own Kafka source; names are case-insensitive, and what it refuses is
refused here. Options of our own: `columns`, `maxBytesPerTrigger`, `splitPartitions`, `commitGroupOffsets`,
`maxBatchRows`, `maxBatchBytes`, and the formats of key and value.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeVar

from kaspar.base.ids import TopicPartition
from kaspar.protocol.isolation_level import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.spark.formats import FormatOptions
from kaspar.spark.kafka_settings import (
    ConnectionSettings,
    InvalidOption,
    connection_settings,
    kafka_settings,
    whole_number,
)
from kaspar.spark.offsets import (
    EARLIEST,
    LATEST,
    SPECIAL_OFFSETS,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
from kaspar.spark.option_names import READ_OPTIONS, refuse_misspelled
from kaspar.spark.reading.java_patterns import python_pattern

__all__ = ["COLUMNS", "InvalidOption", "OffsetLimit", "ReadOptions", "Subscription"]

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""The columns, in the order of Spark's own source; `headers` is only read on request."""
HEADER_BYTES = "headerBytes"
"""Headers as one binary column, instead of `headers`: Spark is slow at passing arrays to Python (arrow_columns.py)."""
KEY_PARTITION = "keyPartition"
"""The partition to which Kafka's clients would write the key in a topic with `keyPartitions` partitions."""

_ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}

_UNSUPPORTED_SETTINGS = {
    "auto.offset.reset": "use the option 'startingOffsets'",
    "key.deserializer": "keys are read as bytes, or in the format of the option 'key.format'",
    "value.deserializer": "values are read as bytes, or in the format of the option 'value.format'",
    "enable.auto.commit": "use the option 'commitGroupOffsets'",
    "interceptor.classes": "an interceptor could change the records",
}
_Value = TypeVar("_Value")
_TIME_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics or partitions to read; exactly one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern}"
        if self.assigned:
            return f"assign {', '.join(map(str, self.assigned))}"
        return f"subscribe {', '.join(self.topics)}"


@dataclass(frozen=True, slots=True)
class OffsetLimit:
    """Where to start or end; exactly one of the four is given."""

    everywhere: int | None = None
    """EARLIEST or LATEST."""
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    """With `offsets`: topics with all partitions at EARLIEST or LATEST."""

    def includes(self, special: int) -> bool:
        """Whether any partition is at this special offset, EARLIEST or LATEST."""
        return special in (self.everywhere, *(self.offsets or {}).values(), *self.topics.values())

    def is_at(self, where: TopicPartition, special: int) -> bool:
        return special in (self.everywhere, (self.offsets or {}).get(where), self.topics.get(where.topic))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    connection: ConnectionSettings
    subscription: Subscription
    starting: OffsetLimit | None
    """None if not given, which means earliest for a batch and latest for a stream."""
    ending: OffsetLimit | None
    latest_if_no_timestamp_matches: bool
    """startingOffsetsByTimestampStrategy: start at the end instead of failing if no record is that late."""
    fail_on_data_loss: bool
    isolation_level: int
    columns: tuple[str, ...]
    key_partitions: int | None
    """The number of partitions for the column `keyPartition`."""

    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    max_trigger_delay_ms: int
    limit_by_timestamp: bool
    """Whether a micro-batch that is cut short by a limit ends at the same time in all partitions."""
    min_partitions: int | None
    max_records_per_partition: int | None
    split_partitions: bool | None
    """Whether large partitions are split among tasks. None if not given, which means true for a batch and false for a
    stream, which may rely on the order of a partition."""

    group_id: str
    commit_group_offsets: bool
    """Defaults to false if the query names a group, whose offsets may belong to another application."""
    commit_group_metadata: str
    """The metadata that is committed with every offset."""
    offset_attempts: int
    offset_retry_interval_ms: int

    rack: str
    """client.rack: brokers may choose a replica in this rack to read from (KIP-392). Empty if there is none."""
    fetch_max_bytes: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    max_batch_rows: int
    """The maximum number of rows of an Arrow record batch; with `max_batch_bytes` it bounds a task's memory."""
    max_batch_bytes: int

    key_format: FormatOptions
    value_format: FormatOptions
    dead_letter_topic: str | None

    @staticmethod
    def of(options: Mapping[str, str]) -> "ReadOptions":
        """Raises InvalidOption. for_batch() and for_stream() check what is valid for only one of them."""
        given = {name.lower(): value for name, value in options.items()}
        if "provider" in given:  # Spark adds it for CREATE TABLE
            raise InvalidOption(
                "A topic cannot be a catalog table, because Spark does not store the options of tables of Python data "
                "sources: use CREATE TEMPORARY VIEW name USING kaspar OPTIONS (...)."
            )
        refuse_misspelled(options, READ_OPTIONS)
        settings = kafka_settings(given)
        for name, instead in _UNSUPPORTED_SETTINGS.items():
            if name in settings:
                raise InvalidOption(f"Option 'kafka.{name}' is not supported: {instead}.")
        subscription = _subscription(given)
        read = ReadOptions(
            connection=connection_settings(settings),
            subscription=subscription,
            starting=_limit(given, "starting"),
            ending=_limit(given, "ending"),
            latest_if_no_timestamp_matches=_choice(
                given, "startingOffsetsByTimestampStrategy", {"error": False, "latest": True}, default="error"
            ),
            fail_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
            isolation_level=_choice(given, "kafka.isolation.level", _ISOLATION_LEVELS, default="read_uncommitted"),
            columns=_columns(given),
            key_partitions=_optional_number(given, "keyPartitions"),
            max_offsets_per_trigger=_optional_number(given, "maxOffsetsPerTrigger"),
            min_offsets_per_trigger=_optional_number(given, "minOffsetsPerTrigger", at_least=0),
            max_bytes_per_trigger=_optional_number(given, "maxBytesPerTrigger"),
            max_trigger_delay_ms=_duration_ms(given, "maxTriggerDelay", "15m"),
            limit_by_timestamp=_boolean(given, "limitByTimestamp", default=False),
            min_partitions=_optional_number(given, "minPartitions"),
            max_records_per_partition=_optional_number(given, "maxRecordsPerPartition"),
            split_partitions=_boolean(given, "splitPartitions") if "splitpartitions" in given else None,
            group_id=_group_id(given, settings, subscription),
            commit_group_offsets=_boolean(given, "commitGroupOffsets", default=not _given_group_id(settings)),
            commit_group_metadata=given.get("commitgroupmetadata", ""),
            offset_attempts=_number(given, "fetchOffset.numRetries", 3, at_least=1),
            offset_retry_interval_ms=_number(given, "fetchOffset.retryIntervalMs", 1000),
            rack=settings.get("client.rack", "").strip(),
            fetch_max_bytes=whole_number(settings, "fetch.max.bytes", 2 * 1024 * 1024, at_least=1, prefix="kafka."),
            fetch_min_bytes=whole_number(settings, "fetch.min.bytes", 1, prefix="kafka."),
            fetch_max_wait_ms=whole_number(settings, "fetch.max.wait.ms", 500, prefix="kafka."),
            max_batch_rows=_number(given, "maxBatchRows", 65_536, at_least=1),
            max_batch_bytes=_number(given, "maxBatchBytes", 8 * 1024 * 1024, at_least=1),
            key_format=FormatOptions.of(given, "key"),
            value_format=FormatOptions.of(given, "value"),
            dead_letter_topic=given.get("deadlettertopic") or None,
        )
        if (read.min_offsets_per_trigger or 0) > (read.max_offsets_per_trigger or 1 << 63):
            raise InvalidOption(
                f"Option 'minOffsetsPerTrigger' ({read.min_offsets_per_trigger}) is higher than "
                f"'maxOffsetsPerTrigger' ({read.max_offsets_per_trigger})."
            )
        return read

    def planned(self) -> "ReadOptions":
        """The options with the current schemas of the registry, which determine the columns. Raises InvalidOption."""
        if self.key_format.registry is None and self.value_format.registry is None:
            return self
        from kaspar.spark.formats.registered import planned  # most queries have no registry

        named = self.subscription
        topics = named.topics or tuple(sorted({where.topic for where in named.assigned}))
        return replace(
            self,
            key_format=planned(self.key_format, "key", topics) if "key" in self.columns else self.key_format,
            value_format=planned(self.value_format, "value", topics) if "value" in self.columns else self.value_format,
        )

    def for_batch(self) -> tuple[OffsetLimit, OffsetLimit]:
        """Where a batch starts and ends. Raises InvalidOption if the start is after the end."""
        starting = self.starting or OffsetLimit(everywhere=EARLIEST)
        ending = self.ending or OffsetLimit(everywhere=LATEST)
        if starting.includes(LATEST):
            raise InvalidOption("Option 'startingOffsets' cannot be latest in a batch query: it would read nothing.")
        if ending.includes(EARLIEST):
            raise InvalidOption("Option 'endingOffsets' cannot be earliest in a batch query: it would read nothing.")
        for first, last, what in (
            (starting.offsets, ending.offsets, "offset"),
            (starting.timestamps, ending.timestamps, "timestamp"),
        ):
            if first is not None and last is not None:
                _refuse_crossed(first, last, what, whole_topics={*starting.topics, *ending.topics})
        return starting, ending

    def for_stream(self) -> OffsetLimit:
        """Where a new stream starts. Raises InvalidOption for ending options, except the one Spark's source ignores."""
        if self.ending is not None and self.ending.timestamp is None:
            raise InvalidOption(
                "Options 'endingOffsets' and 'endingOffsetsByTimestamp' are not valid in a streaming query, which runs "
                "until it is stopped."
            )
        return self.starting or OffsetLimit(everywhere=LATEST)


def _subscription(given: Mapping[str, str]) -> Subscription:
    named = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in given]
    if len(named) != 1:
        given_ones = f"{' and '.join(named)} are" if named else "none is"
        raise InvalidOption(
            f"Exactly one of the options subscribe, subscribePattern, assign must be given, and {given_ones}."
        )
    text = given[named[0].lower()].strip()
    if named[0] == "assign":
        assigned = parse_partitions("assign", text)
        if not assigned:
            raise InvalidOption("Option 'assign' names no partition.")
        return Subscription(assigned=assigned)
    if named[0] == "subscribe":
        topics = tuple(sorted({topic.strip() for topic in text.split(",") if topic.strip()}))
        if not topics:
            raise InvalidOption(f"Option 'subscribe' names no topic: it is {text!r}.")
        return Subscription(topics=topics)
    if not text:
        raise InvalidOption("Option 'subscribePattern' is empty.")
    try:
        return Subscription(pattern=python_pattern(text))
    except re.error as error:
        raise InvalidOption(f"Option 'subscribePattern' cannot be used: {error} in {text!r}.") from None


def _limit(given: Mapping[str, str], side: str) -> OffsetLimit | None:
    """The limit of one side. A timestamp for all partitions takes precedence over timestamps by partition, and both
    over offsets, as in Spark's source."""
    if (text := given.get(f"{side}timestamp")) is not None:
        return OffsetLimit(timestamp=_whole(f"{side}Timestamp", text))
    if (text := given.get(f"{side}offsetsbytimestamp")) is not None:
        return OffsetLimit(timestamps=parse_timestamps(f"{side}OffsetsByTimestamp", text.strip()))
    if (text := given.get(f"{side}offsets")) is None:
        return None
    if (everywhere := SPECIAL_OFFSETS.get(text.strip().lower())) is not None:
        return OffsetLimit(everywhere=everywhere)
    offsets, topics = parse_offsets(f"{side}Offsets", text.strip())
    if any(offset < EARLIEST for offset in offsets.values()):
        raise InvalidOption(f"Option '{side}Offsets' has an offset below -2 (which is earliest; -1 is latest): {text}.")
    return OffsetLimit(offsets=offsets, topics=topics)


def _refuse_crossed(
    first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int], what: str, *, whole_topics: Set[str]
) -> None:
    if only_one := sorted(where for where in first.keys() ^ last.keys() if where.topic not in whole_topics):
        named = ", ".join(map(str, only_one))
        raise InvalidOption(f"Starting and ending {what}s must name the same partitions; only one names {named}.")
    for where in sorted(first.keys() & last.keys()):
        if 0 <= last[where] < first[where]:
            raise InvalidOption(
                f"The starting {what} {first[where]} of {where} is greater than its ending {what} {last[where]}."
            )


def _columns(given: Mapping[str, str]) -> tuple[str, ...]:
    include_headers = _boolean(given, "includeHeaders", default=False)
    text = given.get("columns")
    if text is None:
        return COLUMNS if include_headers else COLUMNS[:-1]
    named = {column.lower(): column for column in (*COLUMNS, HEADER_BYTES, KEY_PARTITION)}
    wanted = [column.strip() for column in text.split(",") if column.strip()]
    for column in wanted:
        if column.lower() not in named:
            raise InvalidOption(
                f"Option 'columns' names {column!r}, which does not exist; valid: {', '.join(COLUMNS)}."
            )
    if not wanted:
        raise InvalidOption("Option 'columns' names no column.")
    if KEY_PARTITION.lower() in map(str.lower, wanted) and "keypartitions" not in given:
        raise InvalidOption("The column 'keyPartition' needs the option 'keyPartitions': of how many partitions?")
    return tuple(dict.fromkeys(named[column.lower()] for column in wanted))


def _group_id(given: Mapping[str, str], settings: Mapping[str, str], subscription: Subscription) -> str:
    """The group id. It is stable across restarts: derived from the subscription if no group.id is given."""
    if given_id := _given_group_id(settings):
        return given_id
    prefix = given.get("groupidprefix", "").strip() or "spark-kaspar-source"
    return f"{prefix}-{blake2b(str(subscription).encode(), digest_size=4).hexdigest()}"


def _given_group_id(settings: Mapping[str, str]) -> str:
    return settings.get("group.id", "").strip()


def _boolean(given: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    return _choice(given, name, {"true": True, "false": False}, default=str(default).lower())


def _choice(given: Mapping[str, str], name: str, choices: Mapping[str, _Value], *, default: str) -> _Value:
    text = given.get(name.lower(), default).strip().lower()
    if text not in choices:
        raise InvalidOption(f"Option '{name}' must be {' or '.join(choices)}, not {text!r}.")
    return choices[text]


def _optional_number(given: Mapping[str, str], name: str, *, at_least: int = 1) -> int | None:
    return _number(given, name, 0, at_least=at_least) if name.lower() in given else None


def _number(given: Mapping[str, str], name: str, default: int, *, at_least: int = 0) -> int:
    return whole_number({name: given[name.lower()]} if name.lower() in given else {}, name, default, at_least=at_least)


def _whole(name: str, text: str) -> int:
    return whole_number({name: text}, name, 0)


def _duration_ms(given: Mapping[str, str], name: str, default: str) -> int:
    """A duration in Spark's form, such as 15m or 200ms; a plain number is in milliseconds."""
    text = given.get(name.lower(), default).strip().lower()
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text)
    if match is None or (match[2] or "ms") not in _TIME_UNITS_MS:
        raise InvalidOption(f"Option '{name}' must be a time like 500ms, 30s, 15m or 2h, not {text!r}.")
    return int(int(match[1]) * _TIME_UNITS_MS[match[2] or "ms"])
