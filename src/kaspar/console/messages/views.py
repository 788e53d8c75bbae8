"""Records for filters and for the page. Keys and values are decoded on first use, and only once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kaspar.console.messages.contents import (
    Content,
    Format,
    Kind,
    SchemaReader,
    content_of,
    internal_contents,
)
from kaspar.console.messages.dead_letters import origin_of
from kaspar.console.messages.reading.batches import StoredRecord

LIST_CHARACTERS: Final = 600
"""The maximum number of characters of a value in a list."""
WHOLE_CHARACTERS: Final = 2_000_000
"""The maximum number of characters of a value that is requested by itself; larger ones are downloaded."""
_HEADER_CHARACTERS: Final = 300
_LISTED_HEADERS: Final = 50
_JSON_KINDS: Final = (Kind.JSON, Kind.AVRO, Kind.JSON_SCHEMA, Kind.PROTOBUF, Kind.INTERNAL)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the keys and values of a page are read."""

    key: Format = Format.AUTO
    value: Format = Format.AUTO
    schemas: SchemaReader | None = None


class RecordView:
    """A record as `Fields` for a filter, and as a row for the page."""

    __slots__ = ("_decoding", "_key", "_value", "stored")

    def __init__(self, stored: StoredRecord, decoding: Decoding) -> None:
        self.stored = stored
        self._decoding = decoding
        self._key: Content | None = None
        self._value: Content | None = None

    @property
    def topic(self) -> str:
        return self.stored.where.topic

    @property
    def partition(self) -> int:
        return self.stored.where.partition

    @property
    def offset(self) -> int:
        return self.stored.record.offset

    @property
    def timestamp(self) -> int:
        return self.stored.record.timestamp

    def key(self) -> Any:
        return self.key_content().value

    def value(self) -> Any:
        return self.value_content().value

    def headers(self) -> Mapping[str, str | None]:
        return {
            name: None if value is None else value.decode(errors="replace")
            for name, value in self.stored.record.headers
        }

    def texts(self) -> Iterable[str]:
        yield self.key_content().text
        yield self.value_content().text
        for name, value in self.stored.record.headers:
            yield name
            if value is not None:
                yield value.decode(errors="replace")

    def key_content(self) -> Content:
        if self._key is None:
            self._decode_internal()
        if self._key is None:
            self._key = self._content(is_key=True)
        return self._key

    def value_content(self) -> Content:
        if self._value is None:
            self._decode_internal()
        if self._value is None:
            self._value = self._content(is_key=False)
        return self._value

    def _content(self, *, is_key: bool, names_subject: bool = False) -> Content:
        record, decoding = self.stored.record, self._decoding
        return content_of(
            record.key if is_key else record.value,
            decoding.key if is_key else decoding.value,
            headers=record.headers,
            is_key=is_key,
            schemas=decoding.schemas,
            names_subject=names_subject,
        )

    def _decode_internal(self) -> None:
        record = self.stored.record
        if self.topic.startswith("__") and (found := internal_contents(self.topic, record.key, record.value)):
            self._key, self._value = found

    # --- for the page -------------------------------------------------------------------------------------------------

    def row(self, characters: int = LIST_CHARACTERS) -> dict[str, Any]:
        record = self.stored.record
        origin = origin_of(record.headers)
        return {
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "timestamp_type": "LogAppendTime" if self.stored.is_log_append_time else "CreateTime",
            "state": self.stored.state.value,
            "note": self.stored.note,
            "producer_id": self.stored.producer_id if self.stored.producer_id >= 0 else None,
            "size": self.stored.size,
            "key": _shown(self._named(self.key_content(), is_key=True), record.key, characters),
            "value": _shown(self._named(self.value_content(), is_key=False), record.value, characters),
            "headers": [_header(name, value) for name, value in record.headers[:_LISTED_HEADERS]],
            "header_count": len(record.headers),
            "dead_letter": None if origin is None else msgspec.to_builtins(origin),
        }

    def whole(self) -> dict[str, Any]:
        """The row with complete values, and JSON formatted."""
        record = self.stored.record
        row = self.row()
        for name, content, data in (
            ("key", self.key_content(), record.key),
            ("value", self.value_content(), record.value),
        ):
            formatted = _formatted(content)
            row[name] = row[name] | _shown(formatted, data, WHOLE_CHARACTERS, is_schema_kept=True)
        row["headers"] = [_header(name, value, WHOLE_CHARACTERS) for name, value in record.headers]
        return row

    def _named(self, content: Content, *, is_key: bool) -> Content:
        """The content with the subject of its schema, which is not looked up during a scan."""
        schema = content.schema
        if schema is None or schema.subject is not None or content.problem is not None:
            return content
        return self._content(is_key=is_key, names_subject=True)


def _shown(content: Content, data: bytes | None, characters: int, *, is_schema_kept: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "kind": content.kind.value,
        "text": _safe(content.text[:characters]),
        "cut": len(content.text) > characters,
        "length": len(data or b""),
        "problem": content.problem,
    }
    if not is_schema_kept:
        shown["schema"] = None if content.schema is None else msgspec.to_builtins(content.schema)
    return shown


def _header(name: str, value: bytes | None, characters: int = _HEADER_CHARACTERS) -> dict[str, Any]:
    return {"name": _safe(name), "value": _shown(content_of(value), value, characters)}


def _formatted(content: Content) -> Content:
    """JSON with line breaks. Its numbers stay as written."""
    if content.kind not in _JSON_KINDS:
        return content
    try:
        text = msgspec.json.format(content.text.encode("utf-8", "replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):  # Avro and Protobuf have numbers that JSON does not have
        return content
    return Content(content.kind, content.value, text, content.schema, content.problem)


def _safe(text: str) -> str:
    """The text without unpaired surrogates, which cannot be encoded in UTF-8."""
    return text.encode("utf-8", "replace").decode()
