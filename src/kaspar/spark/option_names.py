"""Rejects misspelled options, and suggests the name that was probably meant.

Spark passes a source every option of the query, and its own connector ignores unknown ones. So does this one, since a
query may have options of other sources, and Kafka client settings that do not apply here. But `startingOffset` or
`kafka.isolation` is neither: if it were ignored, the query would silently read the wrong records.
"""

import re
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from typing import Final

from kaspar.spark.registry_options import REGISTRY_OPTIONS
from kaspar.spark.security_options import PREFIX, REFUSED, SECURITY_OPTIONS, InvalidOption

_CONNECTION: Final = ("kafka.bootstrap.servers", "kafka.client.id", "kafka.request.timeout.ms", *SECURITY_OPTIONS)

_READ_FORMAT: Final = ("format", "schema", "readerSchema", "message", "subject", "schema.version")
_WRITTEN_FORMAT: Final = ("format", "schema", "message", "subject", "schema.version", "subject.name.strategy")

READ_OPTIONS: Final = (
    *_CONNECTION,
    *REGISTRY_OPTIONS,
    "subscribe",
    "subscribePattern",
    "assign",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "maxTriggerDelay",
    "limitByTimestamp",
    "minPartitions",
    "maxRecordsPerPartition",
    "splitPartitions",
    "includeHeaders",
    "columns",
    "keyPartitions",
    "groupIdPrefix",
    "commitGroupOffsets",
    "commitGroupMetadata",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "maxBatchRows",
    "maxBatchBytes",
    *(f"{field}.{name}" for field in ("key", "value") for name in _READ_FORMAT),
    "deadLetterTopic",
    "kafka.isolation.level",
    "kafka.group.id",
    "kafka.client.rack",
    "kafka.fetch.max.bytes",
    "kafka.fetch.min.bytes",
    "kafka.fetch.max.wait.ms",
)
"""Every option of a read that has an effect."""

WRITE_OPTIONS: Final = (
    *_CONNECTION,
    *REGISTRY_OPTIONS,
    *(f"{field}.{name}" for field in ("key", "value") for name in _WRITTEN_FORMAT),
    "auto.register.schemas",
    "use.latest.version",
    "normalize.schemas",
    "topic",
    "guarantee",
    "txnAppId",
    "txnVersion",
    "kafka.acks",
    "kafka.enable.idempotence",
    "kafka.compression.type",
    "kafka.compression.gzip.level",
    "kafka.compression.lz4.level",
    "kafka.compression.zstd.level",
    "kafka.batch.size",
    "kafka.max.request.size",
    "kafka.buffer.memory",
    "kafka.max.in.flight.requests.per.connection",
    "kafka.retries",
    "kafka.retry.backoff.ms",
    "kafka.retry.backoff.max.ms",
    "kafka.delivery.timeout.ms",
    "kafka.max.block.ms",
    "kafka.transaction.timeout.ms",
    "kafka.partitioner.ignore.keys",
)
"""Every option of a write that has an effect."""

_OTHERS: Final = frozenset(
    {
        # Options of Spark's other sources and sinks.
        "maxfilespertrigger",
        "maxrowspertrigger",
        "maxrecordsperfile",
        "maxpartitionbytes",
        "numpartitions",
        "batchsize",
        # Kafka client settings that do not apply here.
        "kafka.max.partition.fetch.bytes",
        "kafka.group.instance.id",
        "kafka.group.protocol",
        "kafka.group.remote.assignor",
        # Options that are refused elsewhere, with their own reason.
        *(f"{PREFIX}{name}" for name in REFUSED),
    }
)
"""Valid options that are not ours, but resemble ours."""

_KNOWN: Final = frozenset(name.lower() for name in (*READ_OPTIONS, *WRITE_OPTIONS)) | _OTHERS
_SHORT: Final = 8
_ALIKE: Final = 0.86


def refuse_misspelled(given: Iterable[str], meant: Collection[str]) -> None:
    """Raises InvalidOption for the first name that is not one of `meant`, but close to one."""
    for name in given:
        if name.lower() not in _KNOWN and (right := _meant_by(name, meant)) is not None:
            raise InvalidOption(f"Unknown option '{name}'. Did you mean '{right}'?")


def _meant_by(name: str, meant: Collection[str]) -> str | None:
    letters = _letters(name)
    for right in meant:
        # The prefix is missing or superfluous, or the separators differ.
        if letters == _letters(right):
            return right
    if name.lower().startswith(PREFIX):
        for right in meant:
            if right.startswith(PREFIX) and _leaves_out_some(_words(name), _words(right)):
                return right
    alike = max(meant, key=lambda right: _alike(letters, _letters(right)))
    return alike if _is_slip(letters, _letters(alike)) else None


def _leaves_out_some(words: list[str], right: list[str]) -> bool:
    """Whether a name is the right one with some words left out."""
    rest = iter(right)
    return bool(words) and all(word in rest for word in words)


def _is_slip(letters: str, right: str) -> bool:
    """Whether the names differ by one wrong letter in a short name, or by two or a few missing ones in a longer one."""
    if min(len(letters), len(right)) < _SHORT:
        return len(right) > 3 and _alike(letters, right) >= 1 - 1.01 / len(right)
    return _alike(letters, right) >= _ALIKE


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower().removeprefix(PREFIX))


def _letters(name: str) -> str:
    return "".join(_words(name))
