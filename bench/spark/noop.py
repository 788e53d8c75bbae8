"""The minimum for a micro-batch: a source in Python that creates one row at a time, and a sink in Python that drops it.

The time that a batch takes between the two is Spark's own.
"""

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

PAUSE_SECONDS = 0.2  # between two rows


class NoOpDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "noop_in_python"

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _Reader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return _Writer()


class _Reader(DataSourceStreamReader):
    """Offsets are the numbers of rows that are due."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"rows": int(time.time() / PAUSE_SECONDS)}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: N802
        return {"rows": int(time.time() / PAUSE_SECONDS)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(end["rows"] - start["rows"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array([b"row"] * partition.value, pa.binary())], names=["value"])


class _Writer(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass
