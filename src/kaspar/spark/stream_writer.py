"""`df.writeStream.format("kaspar")`: Spark makes a writer before every micro-batch, and another one to commit it.

Append mode writes what is new, complete mode the whole result of each micro-batch: both are appended to the topic, as
Spark's own sink does. Spark asks for update mode through foreachBatch.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kaspar.spark.garbage import set_aside_what_is_loaded
from kaspar.spark.guarantee import guarantee_of
from kaspar.spark.sentences import answered_by, in_one_sentence
from kaspar.spark.write_options import WriteOptions
from kaspar.spark.write_schema import check_schema

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class KasparStreamWriter(DataSourceStreamArrowWriter):
    @in_one_sentence()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Raises InvalidOption with a sentence, before anything is written. `overwrite` is complete mode."""
        self._options = WriteOptions.of(options)
        check_schema(schema, self._options.topic)
        self._guarantee = guarantee_of(self._options, streaming=True)
        set_aside_what_is_loaded()

    @in_one_sentence()
    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        from kaspar.spark.encoding import write_rows

        return write_rows(iterator, self._options, self._guarantee)

    @in_one_sentence()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with answered_by(self._options.connection.bootstrap_servers):
            self._guarantee.publish(messages, batchId)
        set_aside_what_is_loaded()

    @in_one_sentence()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with answered_by(self._options.connection.bootstrap_servers):
            self._guarantee.abort(messages, batchId)
