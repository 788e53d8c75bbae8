"""`df.writeStream.format("kaspar")`: Spark creates a writer before every micro-batch, and another to commit it.

Append mode writes new rows, complete mode the whole result of each micro-batch: both are appended to the topic, as in
Spark's own sink. Spark requires foreachBatch for update mode.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kaspar.spark.errors import naming_brokers, without_traceback
from kaspar.spark.garbage import freeze_loaded_objects
from kaspar.spark.writing.guarantee import Guarantee
from kaspar.spark.writing.options import WriteOptions
from kaspar.spark.writing.schema import planned

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class KasparStreamWriter(DataSourceStreamArrowWriter):
    @without_traceback()
    def __init__(self, options: WriteOptions, guarantee: Guarantee, schema: StructType) -> None:
        """Raises InvalidOption before anything is written."""
        self._guarantee = guarantee
        self._options = planned(options, schema)
        freeze_loaded_objects()

    @without_traceback()
    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        from kaspar.spark.writing.encoding import write_rows

        return write_rows(iterator, self._options, self._guarantee).message

    @without_traceback()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with naming_brokers(self._options.connection.bootstrap_servers):
            self._guarantee.publish(messages)
        freeze_loaded_objects()

    @without_traceback()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with naming_brokers(self._options.connection.bootstrap_servers):
            self._guarantee.abort(messages)
