"""`from_registry` and `to_registry`: columns of records by the schemas of a registry, wherever the bytes come from.

They do what the formats of the data source do, with the same code. The settings of the registry are part of the
function, not of the query's plan.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from kaspar.base.errors import KasparError
from kaspar.spark.errors import without_traceback
from kaspar.spark.formats.declared import FormatOptions
from kaspar.spark.formats.encoding_options import EncodingOptions
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.registry_options import URL, registry_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from kaspar.spark.formats.registered_encoder import Encoder

Registry = str | Mapping[str, str]
"""A URL, or Confluent's properties of a client, which may be options of the data source."""
Mode = Literal["FAILFAST", "PERMISSIVE"]


def from_registry(
    column: "Column | str",
    registry: Registry,
    *,
    subject: str | None = None,
    version: int | None = None,
    reader_schema: str | None = None,
    message: str | None = None,
    format: str = "avro",  # noqa: A002
    mode: Mode = "FAILFAST",
) -> "Column":
    """The values of a binary column of records with the ids of their schemas in front.

    Its type is that of the reader's schema: `reader_schema`, or the version of `subject`, by default the latest, which
    is looked up now. `format` is avro, json or protobuf; `message` the full name of a Protobuf message that is not the
    first of its schema. A record that cannot be decoded fails the query, or is null in the mode PERMISSIVE, as with
    Spark's from_avro.

        rows.select(from_registry("value", "http://localhost:8081", subject="orders-value").alias("order"))
    """
    from kaspar.spark.formats.registered import planned, registered_decoder

    if subject is None and reader_schema is None:
        raise InvalidOption("from_registry() needs the subject of the reader's schema, or reader_schema.")
    if mode not in ("FAILFAST", "PERMISSIVE"):
        raise InvalidOption(f"The mode of from_registry() must be FAILFAST or PERMISSIVE, not {mode!r}.")
    given = {
        **_properties(registry),
        "value.format": format,
        "value.subject": subject or "",
        "value.schema.version": "" if version is None else str(version),
        "value.readerSchema": reader_schema or "",
        "value.message": message or "",
    }
    declared = planned(FormatOptions.of(given, "value"), "value", ())
    data_type = registered_decoder(declared).data_type
    return _applied(_decoding(declared, mode), data_type, column)


def to_registry(
    column: "Column | str",
    registry: Registry,
    subject: str,
    *,
    schema: str | None = None,
    version: int | None = None,
    message: str | None = None,
    format: str = "avro",  # noqa: A002
) -> "Column":
    """The values of a column as records with the id of their schema in front.

    The schema is `schema`, or the given version of `subject`, or, for Avro, that of the column's type; what is not
    registered yet is registered under `subject`. `use.latest.version`, `auto.register.schemas` and `normalize.schemas`
    among the properties have Confluent's meaning. JSON and Protobuf need a schema, or use the latest of the subject.

        rows.select(to_registry(struct("id", "amount"), "http://localhost:8081", "orders-value").alias("value"))
    """
    from pyspark.sql.types import BinaryType

    given = {
        **_properties(registry),
        "value.format": format,
        "value.subject": subject,
        "value.schema": schema or "",
        "value.schema.version": "" if version is None else str(version),
        "value.message": message or "",
    }
    options = EncodingOptions.of(given, "value")
    if options is None:
        raise InvalidOption(f"The format of to_registry() must be avro, json or protobuf, not {format!r}.")
    return _applied(_encoding(options), BinaryType(), column)


def _properties(registry: Registry) -> dict[str, str]:
    given = {URL: registry} if isinstance(registry, str) else dict(registry)
    if registry_of(given) is None:
        raise InvalidOption(f"The properties of the registry must have '{URL}'.")
    return given


def _applied(function: "Callable[[pa.Array], pa.Array]", data_type: "DataType", column: "Column | str") -> "Column":
    from pyspark.sql.pandas import functions

    arrow_udf: Callable[..., Any] = functions.arrow_udf  # its type hints do not allow functions with annotations
    applied: Column = arrow_udf(function, data_type)(column)
    return applied


def _decoding(declared: FormatOptions, mode: Mode) -> "Callable[[pa.Array], pa.Array]":
    import pyarrow as pa

    def from_registry(column: pa.Array) -> pa.Array:  # Spark inspects these annotations, so they must not be strings
        from kaspar.spark.formats.registered import registered_decoder

        with without_traceback():
            done = registered_decoder(declared).decode(column.cast(pa.binary()))
            if done.bad and mode == "FAILFAST":
                raise KasparError(f"A record cannot be decoded: {done.bad[min(done.bad)]}.")
        return done.values

    return from_registry


def _encoding(options: EncodingOptions) -> "Callable[[pa.Array], pa.Array]":
    import pyarrow as pa

    def to_registry(column: pa.Array) -> pa.Array:
        with without_traceback():
            return _encoder(options, column.type).encode(column)

    return to_registry


@lru_cache(maxsize=32)
def _encoder(options: EncodingOptions, arrow_type: "pa.DataType") -> "Encoder":
    """The encoder of a column, whose type is known from its first values. Cached for later tasks of this worker."""
    from pyspark.sql.pandas.types import from_arrow_type

    from kaspar.spark.formats.registered_encoder import encoder_of, planned_encoding

    return encoder_of(planned_encoding(options, from_arrow_type(arrow_type), None))
