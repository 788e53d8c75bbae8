"""A task's raw batches through the decoders of key and value.

A record that does not fit stops the query with a sentence that names it; nothing of its batch was given on by then.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from kaspar.base.errors import KasparError
from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.formats.declared import DeclaredFormats, Field, decoder_of

# What a complaint names: read also where the query does not ask for it.
WHICH_RECORD = ("topic", "partition", "offset")


class UndecodableRecord(KasparError):
    """A record does not fit its declared format, and no dead-letter topic was given."""


def raw_columns(options: DeclaredFormats, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns to read so that `decoded` can give the wanted ones: the wanted, and others behind them."""
    if not _decoders(options, wanted):
        return tuple(wanted)
    return (*wanted, *(column for column in WHICH_RECORD if column not in wanted))


def decoded(
    batches: Iterable[pa.RecordBatch], options: DeclaredFormats, wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of the raw columns, turned into batches of the wanted columns with key and value decoded."""
    decoders = _decoders(options, wanted)
    if not decoders:
        yield from batches
        return
    for batch in batches:
        columns = {name: batch.column(name) for name in wanted}
        for field, decoder in decoders.items():
            done = decoder.decode(columns[field])
            for row, reason in done.bad.items():
                topic, partition, offset = (batch.column(name)[row].as_py() for name in WHICH_RECORD)
                raise UndecodableRecord(
                    f"The {field} of the record at offset {offset} of {topic}-{partition} cannot be decoded: {reason}. "
                    "With the option deadLetterTopic such records are put aside and reading goes on."
                )
            columns[field] = done.values
        yield pa.RecordBatch.from_pydict(columns)


def _decoders(options: DeclaredFormats, wanted: Sequence[str]) -> dict[Field, Decoder]:
    fields: tuple[Field, ...] = ("key", "value")
    declared = {"key": options.key_format, "value": options.value_format}
    return {
        field: decoder_of(options, field) for field in fields if field in wanted and declared[field].name != "bytes"
    }
