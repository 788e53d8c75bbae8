"""The data source "kaspar": what Spark asks of it, each answered where it is needed.

Spark makes this object in one Python process, pickles it, and calls each method in another. So it holds the options as
they were given, and nothing that is open. What a method needs is imported in it: a process that only reads loads
nothing of writing.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kaspar.spark.sentences import in_one_sentence


class KasparDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kaspar"

    @in_one_sentence()
    def schema(self) -> StructType:
        from kaspar.spark.columns import schema_of
        from kaspar.spark.options import ReadOptions

        return schema_of(ReadOptions.of(self.options))

    @in_one_sentence()
    def reader(self, schema: StructType) -> DataSourceReader:
        from kaspar.spark.batch_reader import KasparBatchReader
        from kaspar.spark.options import ReadOptions

        return KasparBatchReader(ReadOptions.of(self.options), schema)

    @in_one_sentence()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from kaspar.spark.options import ReadOptions
        from kaspar.spark.stream_reader import KasparStreamReader

        return KasparStreamReader(ReadOptions.of(self.options), schema)

    @in_one_sentence()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from kaspar.spark.batch_writer import KasparBatchWriter

        return KasparBatchWriter(self.options, schema, overwrite)

    @in_one_sentence()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from kaspar.spark.stream_writer import KasparStreamWriter

        return KasparStreamWriter(self.options, schema, overwrite)
