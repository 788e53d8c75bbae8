"""What a scenario may ask of a client, whichever it is.

A driver makes clients with default settings, apart from what a call asks for, so that a scenario sees what people see.
It turns the client's errors into ClientError with Kafka's own name for the error code. What a client cannot do it
declares in `cannot`, with the reason; scenarios that need it are then not run for that client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal, Protocol

from kio.schema.errors import ErrorCode

Acks = Literal["0", "1", "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Reset = Literal["earliest", "latest", "none"]
Headers = tuple[tuple[str, bytes | None], ...]

CALL_TIMEOUT_SECONDS = 30.0
MAX_RECORD_BYTES = 20_000_000  # what the clients let pass, so that it is the broker that refuses a large record


class Ability(Enum):
    """What some client cannot do."""

    CONSUME = "consume from a partition it names itself"
    PRODUCE_TIMESTAMP = "choose a record's timestamp"
    NULL_HEADER = "send a header whose value is null"
    RECORD_ERRORS = "name the error of an invalid record"
    BINARY_HEADER = "send and show any bytes as a header's value"
    EMPTY_RECORD = "send a record with neither key nor value"
    CREATE_TOPIC = "create topics"
    DELETE_TOPIC = "delete topics"
    CREATE_PARTITIONS = "add partitions"
    DELETE_RECORDS = "delete records"
    CONFIGS = "describe and alter settings"
    CONFIG_ERRORS = "report why settings could not be described"
    OFFSETS_BY_TIMESTAMP = "list offsets by timestamp"
    MAX_TIMESTAMP = "list the offset of the largest timestamp"
    REFUSE_RESET = "end with an error when the offset is out of range"


class ClientError(Exception):
    """The client gave up; `code` is Kafka's name of the error, or the client's word for one of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class NothingReceivedError(ClientError):
    """Fewer records came than were asked for, in all the time a call may take."""

    def __init__(self, received: int, wanted: int) -> None:
        super().__init__("NOTHING_RECEIVED", f"only {received} of {wanted} records came")


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce. Without a timestamp the client takes its own clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a partition: to start reading from, or to ask the offset of."""

    kind: Literal["earliest", "latest", "offset", "timestamp", "max_timestamp"]
    value: int = 0


EARLIEST = Position("earliest")
LATEST = Position("latest")
MAX_TIMESTAMP = Position("max_timestamp")


def at_offset(offset: int) -> Position:
    return Position("offset", offset)


def at_timestamp(timestamp_ms: int) -> Position:
    return Position("timestamp", timestamp_ms)


class Driver(Protocol):
    name: ClassVar[str]
    cannot: ClassVar[Mapping[Ability, str]]

    def create_topic(self, topic: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def create_partitions(self, topic: str, total: int) -> None: ...

    def partition_count(self, topic: str) -> int:
        """From the metadata; 0 if there is no such topic. Never creates it."""
        ...

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> list[int]:
        """Send and wait; the offset of each record, or -1 where acks 0 leaves it unknown."""
        ...

    def consume(
        self, topic: str, *, start: Position, count: int, partition: int = 0, reset: Reset = "earliest"
    ) -> list[Received]:
        """Exactly `count` records from `start`; `reset` says what to do when that is out of range."""
        ...

    def list_offset(self, topic: str, position: Position, *, partition: int = 0) -> int:
        """The offset at a position; -1 where there is none."""
        ...

    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        """Returns the partition's new low watermark."""
        ...

    def describe_config(self, topic: str) -> dict[str, str | None]: ...

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None: ...

    def close(self) -> None: ...


def error_name(code: int) -> str:
    """Kafka's name of a wire code."""
    return ErrorCode(code).name.upper()
