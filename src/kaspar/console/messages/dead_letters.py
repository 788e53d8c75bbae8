"""Dead letters: records that a program could not use, written unchanged to another topic, with headers that say why.

Two kinds of headers are known: those of Kafka Connect (KIP-298), which Kaspar's Spark source writes too, with one more
for the record's timestamp; and those of Kafka Streams (KIP-1034), which Kaspar's streams write. Replaying a dead letter
means writing the original record again: the same key, value and headers, without those of the dead letter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.records.record import Header, Record

CONNECT: Final = "__connect.errors."
STREAMS: Final = "__streams.errors."
KASPAR: Final = "__kaspar.errors."
PREFIXES: Final = (CONNECT, STREAMS, KASPAR)
_TIMESTAMP: Final = f"{KASPAR}timestamp"
_MAX_INT64: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Origin:
    """The record from which a dead letter was created, and why. A number that is not in the headers is None."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp: int | None
    reason: str
    stage: str
    """The part that failed: a converter, a class, a connector."""
    details: str = ""
    """The stack trace."""


def origin_of(headers: tuple[Header, ...]) -> Origin | None:
    """The origin in the headers of a dead letter; None for any other record."""
    texts = {name: (value or b"").decode(errors="replace") for name, value in headers if name.startswith(PREFIXES)}
    for prefix in (CONNECT, STREAMS):
        if topic := texts.get(f"{prefix}topic"):
            return _origin(topic, prefix, texts)
    return None


def original_headers(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    return tuple(each for each in headers if not each[0].startswith(PREFIXES))


def original_record(letter: Record, *, now_ms: int, keep_timestamp: bool) -> Record:
    """The record to write to the dead letter's topic of origin. `keep_timestamp`: with the time of the original record,
    if the dead letter contains it."""
    origin = origin_of(letter.headers)
    timestamp = now_ms
    if keep_timestamp and origin is not None and origin.timestamp is not None:
        timestamp = origin.timestamp
    return Record(timestamp, letter.key, letter.value, original_headers(letter.headers))


def _origin(topic: str, prefix: str, texts: Mapping[str, str]) -> Origin:
    def text(*names: str) -> str:
        return next((found for name in names if (found := texts.get(prefix + name))), "")

    return Origin(
        topic,
        _number(text("partition")),
        _number(text("offset")),
        _number(texts.get(_TIMESTAMP, "")),
        text("exception.message", "message") or text("exception.class.name", "exception"),
        text("stage", "exception.class.name", "exception"),
        text("exception.stacktrace", "stacktrace"),
    )


def _number(text: str) -> int | None:
    """The number in a header, which may contain anything; None for a text that cannot be a number of a record."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= 19
    return number if is_number and (number := int(text)) <= _MAX_INT64 else None
