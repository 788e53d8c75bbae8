"""`df.write.format("kaspar")`: `write` runs in each attempt of a task, then `commit` or `abort` on the driver."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kaspar.spark.guarantee import guarantee_of
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.sentences import in_one_sentence
from kaspar.spark.write_options import WriteOptions
from kaspar.spark.write_schema import check_schema

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class KasparBatchWriter(DataSourceArrowWriter):
    @in_one_sentence()
    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Raises InvalidOption with a sentence, before anything is written."""
        if overwrite:
            raise InvalidOption("Save mode overwrite is not allowed for topics, which only grow: use mode('append').")
        self._options = WriteOptions.of(options)
        check_schema(schema, self._options.topic)
        self._guarantee = guarantee_of(self._options, streaming=False)

    @in_one_sentence()
    def write(self, iterator: Iterator["RecordBatch"]) -> WriterCommitMessage:
        from kaspar.spark.encoding import write_rows

        return write_rows(iterator, self._options, self._guarantee)

    @in_one_sentence()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._guarantee.publish(messages, None)

    @in_one_sentence()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._guarantee.abort(messages, None)
