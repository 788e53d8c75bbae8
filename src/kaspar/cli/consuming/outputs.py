"""The output formats for records: `--output` and `--meta`. Each converts a record to bytes, including the line end."""

import base64
import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any, assert_never

from kaspar.cli.consuming.pretty import Colours, pretty
from kaspar.cli.records.json_path import JsonPath
from kaspar.cli.records.json_text import utf8, write_json
from kaspar.cli.records.record import RawRecord, ReadRecord, plain_text, text_or_bytes

Show = Callable[[ReadRecord], bytes]


class Output(StrEnum):
    PRETTY = "pretty"
    JSON = "json"
    VALUE = "value"
    KEY_VALUE = "key-value"
    HEX = "hex"
    BASE64 = "base64"


def show(output: Output, *, meta: bool, separator: str, colours: Colours, width: int) -> Show:
    """The function for an output format. `separator` is put between columns; `colours` and `width` are for `pretty`."""
    match output:
        case Output.PRETTY:
            return lambda record: utf8(pretty(record, meta=meta, colours=colours, width=width)) + b"\n"
        case Output.JSON:
            return lambda record: _json_line(record, meta=meta)
        case Output.VALUE:
            return _columns(meta, separator, lambda record: [record.value_bytes()])
        case Output.KEY_VALUE:
            return _columns(meta, separator, lambda record: [record.key_bytes(), record.value_bytes()])
        case Output.HEX:
            return _columns(
                meta, separator, lambda record: [_mapped(record.raw.value, lambda data: data.hex().encode())]
            )
        case Output.BASE64:
            return _columns(meta, separator, lambda record: [_mapped(record.raw.value, base64.b64encode)])
        case _:
            assert_never(output)


def show_parts(path: JsonPath) -> Show:
    """The function for --path: prints the parts that match, one per line, text unchanged and the rest as JSON."""

    def lines(record: ReadRecord) -> bytes:
        return b"".join(utf8(plain_text(part)) + b"\n" for part in path.find(record.value))

    return lines


def _mapped(data: bytes | None, function: Callable[[bytes], bytes]) -> bytes | None:
    return None if data is None else function(data)


def _columns(meta: bool, separator: str, cells_of: Callable[[ReadRecord], list[bytes | None]]) -> Show:
    between = separator.encode()

    def line(record: ReadRecord) -> bytes:
        cells = [b"" if cell is None else cell for cell in cells_of(record)]
        return between.join([*_meta(record.raw), *cells] if meta else cells) + b"\n"

    return line


def _meta(raw: RawRecord) -> list[bytes]:
    return [str(each).encode() for each in (raw.topic, raw.partition, raw.offset, raw.timestamp_ms)]


def _json_line(record: ReadRecord, *, meta: bool) -> bytes:
    raw = record.raw
    fields: dict[str, Any] = {
        "topic": raw.topic,
        "partition": raw.partition,
        "offset": raw.offset,
        "timestamp": raw.timestamp_ms,
        **_field("key", record.key),
        **_field("value", record.unambiguous_value),
        "headers": [
            {"name": name, **_field("value", None if data is None else text_or_bytes(data))}
            for name, data in raw.headers
        ],
    }
    if meta:
        fields |= {
            "timestamp_type": "LogAppendTime" if raw.is_append_time else "CreateTime",
            "leader_epoch": raw.leader_epoch,
            "key_size": None if raw.key is None else len(raw.key),
            "value_size": None if raw.value is None else len(raw.value),
        }
    return utf8(write_json(fields)) + b"\n"


def _field(name: str, value: Any) -> dict[str, Any]:
    """A JSON field. Bytes that are not text get a different field name, so that readers can distinguish them. JSON has
    no numbers for NaN and infinity: they become text."""
    if isinstance(value, bytes):
        return {f"{name}_base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {name: write_json(value)}
    return {name: value}
