"""Avro records with schema ids of a registry, decoded by our data source, and row by row by fastavro."""

import io
import json
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.types import DataType

from bench.rows import Better, Row
from bench.sides import Role
from bench.spark.cases import Case, Side, drop
from bench.spark.stage import Stage
from kaspar.spark.formats.avro_types import parsed, spark_type
from kaspar.spark.formats.data_types import arrow_type_of

BY_REGISTRY = Side(Role.CANDIDATE, "value.format = avro")
BY_FASTAVRO = Side(Role.REFERENCE, "fastavro row by row")
_ROWS = 1_000_000
_GOAL = 2.0
_PREFIX_BYTES = 5

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "sku", "type": "string"},
            {"name": "quantity", "type": "int"},
            {"name": "price", "type": "double"},
            {"name": "paid", "type": "boolean"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "city", "type": ["null", "string"], "default": None},
            {"name": "discount", "type": ["null", "double"], "default": None},
            {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}},
        ],
    }
)
_VALUES = """
    named_struct(
        'id', id,
        'customer', concat('customer-', lpad(id % 99991, 6, '0')),
        'sku', substring(md5(string(id)), 1, 12),
        'quantity', cast(id % 100 AS int),
        'price', id / 7.0D,
        'paid', id % 2 = 0,
        'at', timestamp_millis(1700000000000 + id),
        'city', if(id % 3 = 0, NULL, 'Ulm'),
        'discount', if(id % 5 = 0, 0.5D, NULL),
        'status', element_at(array('NEW', 'PAID', 'SENT'), cast(id % 3 AS int) + 1)
    ) AS value
"""


class ReadAvro(Case):
    """Reads a flat record of ten fields, about 65 bytes."""

    sides = (BY_REGISTRY, BY_FASTAVRO)

    def __init__(self) -> None:
        title = "Avro by the schema registry, a flat record of ten fields, two tasks"
        super().__init__(
            "read_avro", Row("read_avro", title, "Decode into Spark's no-op sink", "rows/s", Better.MORE, _GOAL)
        )
        self._topic: str | None = None

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        if self._topic is None:
            self._topic = self._filled_topic(stage)
        options = {"kafka.bootstrap.servers": stage.broker.bootstrap, "subscribe": self._topic, "columns": "value"}
        source = stage.spark.read.format(side.format).options(**options)
        if side is BY_REGISTRY:
            frame = source.options(**_by_registry(stage)).load()
        else:
            frame = source.load().mapInArrow(_decode, f"value {_column().simpleString()}")
        seconds = stage.timed(lambda: drop(frame))
        return {self.name: _rows(stage) / seconds}

    def _filled_topic(self, stage: Stage) -> str:
        topic = stage.topics.create(2)
        options = {"kafka.bootstrap.servers": stage.broker.bootstrap, "topic": topic, "value.schema": ORDER}
        rows = stage.spark.range(0, _rows(stage), 1, 2).selectExpr(_VALUES)
        rows.write.format("kaspar").options(**options, **_by_registry(stage)).mode("append").save()
        return topic


def _rows(stage: Stage) -> int:
    return max(1, int(_ROWS * stage.scale))


def _by_registry(stage: Stage) -> dict[str, str]:
    return {"value.format": "avro", "schema.registry.url": stage.registry_url()}


def _column() -> DataType:
    return spark_type(parsed(ORDER))


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from fastavro import parse_schema, schemaless_reader

    schema = parse_schema(json.loads(ORDER))
    arrow_type = arrow_type_of(_column())
    for batch in batches:
        records = batch.column("value").to_pylist()
        values = [schemaless_reader(io.BytesIO(record[_PREFIX_BYTES:]), schema, None) for record in records]
        yield pa.record_batch([pa.array(values, arrow_type)], names=["value"])
