"""`df.write.format("kaspar")`: `write` runs in each attempt of a task, then `commit` or `abort` on the driver."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kaspar.base.errors import KasparError
from kaspar.spark.errors import naming_brokers, without_traceback
from kaspar.spark.garbage import freeze_loaded_objects
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.writing.guarantee import Guarantee
from kaspar.spark.writing.options import WriteOptions
from kaspar.spark.writing.schema import planned

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_MAX_BLOCK_MS = 10_000


class KasparBatchWriter(DataSourceArrowWriter):
    @without_traceback()
    def __init__(self, options: WriteOptions, guarantee: Guarantee, schema: StructType, *, overwrite: bool) -> None:
        """Raises InvalidOption before anything is written."""
        if overwrite:
            raise InvalidOption("Save mode overwrite is not allowed for topics, which only grow: use mode('append').")
        self._guarantee = guarantee
        self._options = planned(options, schema)
        _check_destination(options)
        freeze_loaded_objects()

    @without_traceback()
    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        from kaspar.spark.writing.encoding import write_rows

        return write_rows(iterator, self._options, self._guarantee).message

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with naming_brokers(self._options.connection.bootstrap_servers):
            self._guarantee.publish(messages)
        freeze_loaded_objects()

    @without_traceback()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        with naming_brokers(self._options.connection.bootstrap_servers):
            self._guarantee.abort(messages)


def _check_destination(options: WriteOptions) -> None:
    """Report an unreachable broker or an impossible topic once, before tasks fail one by one."""
    from kaspar.client.producing import RawProducer

    terms = replace(options.producer.terms, max_block_ms=min(options.producer.max_block_ms, _MAX_BLOCK_MS))
    try:
        with options.connection.client() as client, RawProducer(client, producer=None, terms=terms) as producer:
            if options.topic is None:
                client.refresh_metadata([])
            else:
                producer.partitions_of(options.topic)
    except OSError as error:
        raise KasparError(
            f"No broker responds at {options.connection.bootstrap_servers} (kafka.bootstrap.servers): {error}."
        ) from error
