"""`df.write.format("kaspar")`: `write` runs in each attempt of a task, then `commit` or `abort` on the driver."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kaspar.base.errors import KasparError
from kaspar.spark.garbage import set_aside_what_is_loaded
from kaspar.spark.guarantee import guarantee_of
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.sentences import answered_by, in_one_sentence
from kaspar.spark.write_options import WriteOptions
from kaspar.spark.write_schema import check_schema

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_PATIENCE_MS = 10_000


class KasparBatchWriter(DataSourceArrowWriter):
    @in_one_sentence()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Raises InvalidOption with a sentence, before anything is written."""
        if overwrite:
            raise InvalidOption("Save mode overwrite is not allowed for topics, which only grow: use mode('append').")
        self._options = WriteOptions.of(options)
        check_schema(schema, self._options.topic)
        self._guarantee = guarantee_of(self._options, streaming=False)
        _check_destination(self._options)
        set_aside_what_is_loaded()

    @in_one_sentence()
    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        from kaspar.spark.encoding import write_rows

        return write_rows(iterator, self._options, self._guarantee)

    @in_one_sentence()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with answered_by(self._options.connection.bootstrap_servers):
            self._guarantee.publish(messages, None)
        set_aside_what_is_loaded()

    @in_one_sentence()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        with answered_by(self._options.connection.bootstrap_servers):
            self._guarantee.abort(messages, None)


def _check_destination(options: WriteOptions) -> None:
    """A broker that nobody reaches and a topic that cannot be are told once, before tasks fail at it one by one."""
    from kaspar.client.producing import RawProducer

    terms = replace(options.producer.terms, max_block_ms=min(options.producer.max_block_ms, _PATIENCE_MS))
    try:
        with options.connection.client() as client, RawProducer(client, producer=None, terms=terms) as producer:
            if options.topic is None:
                client.refresh_metadata([])
            else:
                producer.partitions_of(options.topic)
    except OSError as error:
        raise KasparError(
            f"No broker answers at {options.connection.bootstrap_servers} (kafka.bootstrap.servers): {error}."
        ) from error
