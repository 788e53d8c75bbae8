"""The JSON of records and of the responses to them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from kaspar.rest.formats.plain import NULL

_Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    pass


class RecordHeader(_Body):
    name: str
    value: bytes | None = None
    """Base64 text."""


class RecordData(_Body):
    """A key or value. Without `type` it has a schema, by default the latest of its subject."""

    type: Literal["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"] | None = None
    subject: str | None = None
    subject_name_strategy: Literal["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"] | None = None
    schema_id: _Int | None = None
    schema_version: _Int | None = None
    schema: str | None = None
    data: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)


class Record(_Body):
    partition_id: _Int | None = None
    headers: list[RecordHeader] | None = None
    key: RecordData | None = None
    value: RecordData | None = None
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class BatchEntry(Record):
    id: Any = None
    """An id chosen by the client that identifies the record in the response: 1 to 80 letters, digits, `-` or `_`."""


class BatchRequest(_Body):
    entries: list[BatchEntry] | None = None


class WrittenData(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    size: int


class Written(msgspec.Struct, omit_defaults=True):
    error_code: int
    """Always 200."""
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None = None
    key: WrittenData | None = None
    value: WrittenData | None = None


class BatchSuccess(msgspec.Struct, omit_defaults=True):
    id: str
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None = None
    key: WrittenData | None = None
    value: WrittenData | None = None


class BatchFailure(msgspec.Struct):
    id: str
    error_code: int
    message: str


class BatchResponse(msgspec.Struct):
    successes: list[BatchSuccess]
    failures: list[BatchFailure]


RECORD: Final = msgspec.json.Decoder(Record, strict=False)
BATCH: Final = msgspec.json.Decoder(BatchRequest, strict=False)


def timestamp_text(timestamp_ms: int | None) -> str | None:
    """The timestamp as Java's Instant formats it: with a fraction only if it is not zero."""
    if timestamp_ms is None:
        return None
    seconds, fraction = divmod(timestamp_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:03}Z" if fraction else f"{text}Z"
