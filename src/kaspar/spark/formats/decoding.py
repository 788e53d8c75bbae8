"""Decodes the keys and values of a task's raw batches.

Without a dead-letter topic a record that cannot be decoded stops the query with an error that names it. With one the
record is omitted from the rows after its dead letter was stored. A dead letter may be written twice if a task runs
again, but no record is lost silently.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import numpy as np
import pyarrow as pa

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.records.record import Record
from kaspar.spark.formats.dead_letters import DeadLetter, DeadLetters, DeadLetterTopic
from kaspar.spark.formats.declared import Field
from kaspar.spark.formats.declared_decoders import DeclaredFormats, decoder_of
from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.kafka_settings import ConnectionSettings

# The columns that an error names, and those of a dead letter: they are read even if the query does not select them.
_WHICH_RECORD = ("topic", "partition", "offset")
_WHOLE_RECORD = (*_WHICH_RECORD, "key", "value", "timestamp", "headers")


class UndecodableRecord(KasparError):
    """A record does not have its declared format, and there is no dead-letter topic."""


class DecodingOptions(DeclaredFormats, Protocol):
    """The part of ReadOptions that decoding needs."""

    @property
    def dead_letter_topic(self) -> str | None: ...
    @property
    def connection(self) -> ConnectionSettings: ...


def raw_columns(options: DecodingOptions, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns that `decoded` needs to return the wanted ones, which come first."""
    if not _decoders(options, wanted):
        return tuple(wanted)
    needed = _WHICH_RECORD if options.dead_letter_topic is None else _WHOLE_RECORD
    return (*wanted, *(column for column in needed if column not in wanted))


def decoded(
    batches: Iterable[pa.RecordBatch], options: DecodingOptions, wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Decode key and value: turn batches of the raw columns into batches of the wanted columns."""
    decoders = _decoders(options, wanted)
    if not decoders:
        yield from batches
        return
    with ExitStack() as open_here:
        letters: DeadLetters | None = None
        if options.dead_letter_topic is not None:
            letters = open_here.enter_context(DeadLetterTopic(options.dead_letter_topic, options.connection))
        for batch in batches:
            good = decode_batch(batch, decoders, wanted, letters)
            if len(good):
                yield good


def decode_batch(
    batch: pa.RecordBatch, decoders: Mapping[Field, Decoder], wanted: Sequence[str], letters: DeadLetters | None
) -> pa.RecordBatch:
    """The rows that can be decoded. The others are put into `letters`; if that is None, the first of them raises."""
    columns = {name: batch.column(name) for name in wanted}
    bad: dict[int, tuple[Field, str]] = {}
    for field, decoder in decoders.items():
        done = decoder.decode(batch.column(field))
        columns[field] = done.values
        for row, reason in done.bad.items():
            bad.setdefault(row, (field, reason))
    good = pa.RecordBatch.from_pydict(columns)
    if not bad:
        return good
    if letters is None:
        raise _undecodable(batch, min(bad), *bad[min(bad)])
    letters.put(_letters(batch, bad, letters.topic))
    stays = np.ones(len(batch), dtype=bool)
    stays[list(bad)] = False
    return good.filter(pa.array(stays))


def _letters(batch: pa.RecordBatch, bad: Mapping[int, tuple[Field, str]], dead_letter_topic: str) -> list[DeadLetter]:
    letters = []
    rows = sorted(bad)
    records = batch.select(list(_WHOLE_RECORD)).take(pa.array(rows))
    times_us = records.column("timestamp").cast(pa.int64()).to_pylist()
    for row, time_us, raw in zip(rows, times_us, records.drop_columns("timestamp").to_pylist(), strict=True):
        field, reason = bad[row]
        if raw["topic"] == dead_letter_topic:  # it would produce dead letters for dead letters without end
            raise _undecodable(batch, row, field, reason)
        headers = tuple((header["key"], header["value"]) for header in raw["headers"] or ())
        record = Record(time_us // 1000, raw["key"], raw["value"], headers, raw["offset"])
        letters.append(DeadLetter(TopicPartition(raw["topic"], raw["partition"]), record, field, reason))
    return letters


def _undecodable(batch: pa.RecordBatch, row: int, field: Field, reason: str) -> UndecodableRecord:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in _WHICH_RECORD)
    return UndecodableRecord(
        f"The {field} of the record at offset {offset} of {topic}-{partition} cannot be decoded: {reason}. "
        "Set the option 'deadLetterTopic' to write such records to another topic and continue."
    )


def _decoders(options: DecodingOptions, wanted: Sequence[str]) -> dict[Field, Decoder]:
    fields: tuple[Field, ...] = ("key", "value")
    declared = {"key": options.key_format, "value": options.value_format}
    return {
        field: decoder_of(options, field) for field in fields if field in wanted and declared[field].name != "bytes"
    }
