"""The data source "kaspar": the methods that Spark calls.

Spark creates this object in one Python process, pickles it, and calls each method in another. So it has only the
options, and no open resources. Each method imports what it needs: a process that only reads does not load the code for
writing.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kaspar.spark.errors import without_traceback

if TYPE_CHECKING:
    from kaspar.spark.reading.options import ReadOptions
    from kaspar.spark.writing.guarantee import Guarantee
    from kaspar.spark.writing.options import WriteOptions


class KasparDataSource(DataSource):
    @without_traceback()
    def __init__(self, options: dict[str, str]) -> None:
        from kaspar.spark.security_options import refuse_readable_key

        super().__init__(options)
        self._read: ReadOptions | None = None
        # Checked here, before there is a plan that would show the key. All other options are read later.
        for name, value in options.items():
            if name.lower().endswith("ssl.keystore.key"):  # of brokers, or of the schema registry
                refuse_readable_key(value)

    @classmethod
    def name(cls) -> str:
        return "kaspar"

    @without_traceback()
    def schema(self) -> StructType:
        from kaspar.spark.reading.schema import schema_of

        return schema_of(self._read_options())

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        from kaspar.spark.reading.batch import KasparBatchReader

        return KasparBatchReader(self._read_options(), schema)

    @without_traceback()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from kaspar.spark.reading.stream import KasparStreamReader

        return KasparStreamReader(self._read_options(), schema)

    def _read_options(self) -> "ReadOptions":
        """The options, which are parsed once. Spark pickles this object after it has requested the schema, so a schema
        from the registry is the same for the columns and for the tasks that decode them."""
        from kaspar.spark.reading.options import ReadOptions

        if self._read is None:
            self._read = ReadOptions.of(self.options).planned()
        return self._read

    @without_traceback()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from kaspar.spark.writing.batch import KasparBatchWriter
        from kaspar.spark.writing.options import WriteOptions

        options = WriteOptions.of(self.options)
        return KasparBatchWriter(options, _guarantee_of(options, streaming=False), schema, overwrite=overwrite)

    @without_traceback()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """`overwrite` means complete mode, whose results are appended as well."""
        from kaspar.spark.writing.options import WriteOptions
        from kaspar.spark.writing.stream import KasparStreamWriter

        options = WriteOptions.of(self.options)
        return KasparStreamWriter(options, _guarantee_of(options, streaming=True), schema)


def _guarantee_of(options: "WriteOptions", *, streaming: bool) -> "Guarantee":
    from kaspar.spark.writing.options import EXACTLY_ONCE

    if options.guarantee == EXACTLY_ONCE:
        from kaspar.spark.exactly_once.guarantee import ExactlyOnce

        return ExactlyOnce.of(options, streaming=streaming)
    from kaspar.spark.writing.at_least_once import AtLeastOnce

    return AtLeastOnce(options)
