"""What bytes are shown as, whatever they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.ids import TopicPartition
from kaspar.console.messages.contents import Format, Kind, content_of
from kaspar.console.messages.filters import Filter
from kaspar.console.messages.reading.batches import State, StoredRecord
from kaspar.console.messages.views import LIST_CHARACTERS, Decoding, RecordView
from kaspar.records.record import Record
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryUnavailable
from kaspar.serialization.records import Decoded
from kaspar.serialization.registry_client import RegisteredSchema, SchemaText
from kaspar.serialization.wire_format import Headers

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\u0000\u001b[31m"


class Registry:
    """Knows schema 7, under a subject."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure

    def decode(self, data: bytes, headers: Headers, *, is_key: bool) -> Decoded:
        if self.failure is not None:
            raise self.failure
        return Decoded({"n": data[5]}, RegisteredSchema(SchemaText(SchemaType.AVRO, '"int"'), id=7))

    def subject_of(self, schema_id: int) -> tuple[str, int] | None:
        return (f"subject-{schema_id}", 3)


def view(record: Record, decoding: Decoding | None = None, **stored: Any) -> RecordView:
    return RecordView(StoredRecord(TopicPartition("t", 1), record, False, **stored), decoding or Decoding())


@pytest.mark.parametrize(
    ("data", "kind", "value"),
    [
        (None, Kind.NULL, None),
        (b"", Kind.TEXT, ""),
        (b'{"a": 1}', Kind.JSON, {"a": 1}),
        (b" [1, 2]", Kind.JSON, [1, 2]),
        (b'"quoted"', Kind.JSON, "quoted"),
        (b"17", Kind.TEXT, "17"),
        (b"true", Kind.TEXT, "true"),
        (b'{"a": ', Kind.TEXT, '{"a": '),
        ("grüße".encode(), Kind.TEXT, "grüße"),
        (b"\x00\x00\x00\x00\x00\x00\x00\x11", Kind.HEX, "0000000000000011"),
        (b"\xff\xfe\xfd", Kind.HEX, "fffefd"),
        (b"almost all of it is text \xff", Kind.TEXT, "almost all of it is text \ufffd"),
        (b"[" * 100_000, Kind.TEXT, "[" * 100_000),
    ],
)
def test_auto_finds_out_what_bytes_are(data: bytes | None, kind: Kind, value: Any) -> None:
    content = content_of(data)
    assert (content.kind, content.value) == (kind, value)


def test_broken_utf_8_is_said() -> None:
    problem = content_of(b"almost all of it is text \xff").problem
    assert problem is not None
    assert "Not valid UTF-8 from byte 25" in problem


@pytest.mark.parametrize(
    ("data", "wanted", "kind", "value"),
    [
        (b"17", Format.JSON, Kind.JSON, 17),
        (b"{", Format.JSON, Kind.TEXT, "{"),
        (b"{}", Format.TEXT, Kind.TEXT, "{}"),
        (b"{}", Format.HEX, Kind.HEX, "7b7d"),
        (b"\x00\x00\x00\x11", Format.INTEGER, Kind.INTEGER, 17),
        (b"\xff" * 8, Format.INTEGER, Kind.INTEGER, -1),
        (b"abc", Format.INTEGER, Kind.TEXT, "abc"),
        (b"\x00\x00\x00\x00\x07\x05", Format.SCHEMA, Kind.HEX, "000000000705"),
    ],
)
def test_a_chosen_format_is_used_where_it_fits(data: bytes, wanted: Format, kind: Kind, value: Any) -> None:
    content = content_of(data, wanted)
    assert (content.kind, content.value) == (kind, value)
    assert (content.problem is None) == (kind.value == wanted.value)


def test_a_schema_of_the_registry_is_used_and_named() -> None:
    content = content_of(b"\x00\x00\x00\x00\x07\x05", schemas=Registry(), names_subject=True)
    assert (content.kind, content.value) == (Kind.AVRO, {"n": 5})
    assert content.schema is not None
    assert (content.schema.id, content.schema.subject, content.schema.version) == (7, "subject-7", 3)


def test_without_the_registry_the_schema_is_still_named() -> None:
    registry = Registry(RegistryUnavailable("The schema registry cannot be reached."))
    content = content_of(b"\x00\x00\x00\x00\x07\xff\xff", schemas=registry)
    assert (content.kind, content.problem) == (Kind.HEX, "The schema registry cannot be reached.")
    assert content.schema is not None
    assert content.schema.id == 7


@settings(max_examples=60, deadline=None, database=None)
@given(st.binary(max_size=300) | st.none(), st.sampled_from(Format))
def test_any_bytes_are_shown_in_any_format(data: bytes | None, wanted: Format) -> None:
    json.dumps(view(Record(1, data, data, (("name", data),)), Decoding(wanted, wanted)).whole()).encode()


def test_a_row_has_a_prefix_of_a_large_value_and_says_how_long_it_is() -> None:
    row = view(Record(1, None, b"x" * 1_000_000)).row()
    assert len(row["value"]["text"]) == LIST_CHARACTERS
    assert (row["value"]["cut"], row["value"]["length"]) == (True, 1_000_000)
    whole = view(Record(1, None, b"x" * 1_000_000)).whole()
    assert (len(whole["value"]["text"]), whole["value"]["cut"]) == (1_000_000, False)


def test_hostile_text_reaches_the_page_unchanged() -> None:
    """To show it harmlessly is the page's task; a text that was changed could not be searched for."""
    row = view(Record(1, HOSTILE.encode(), json.dumps({"h": HOSTILE}).encode(), ((HOSTILE, HOSTILE.encode()),))).row()
    assert row["key"]["text"] == HOSTILE
    assert json.loads(row["value"]["text"]) == {"h": HOSTILE}
    assert row["headers"][0]["name"] == HOSTILE


def test_whole_json_is_formatted_and_keeps_its_numbers() -> None:
    whole = view(Record(1, None, b'{"n":12345678901234567890123,"f":1.10}')).whole()
    assert whole["value"]["text"] == '{\n  "n": 12345678901234567890123,\n  "f": 1.10\n}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"a": [1, {"b": None}]}])
def test_whole_values_by_schema_are_formatted_where_json_can(value: Any) -> None:
    class Odd(Registry):
        def decode(self, data: bytes, headers: Headers, *, is_key: bool) -> Decoded:
            return super().decode(data, headers, is_key=is_key)._replace(value=value)

    record = Record(1, None, b"\x00\x00\x00\x00\x07\x05")
    whole = view(record, Decoding(schemas=Odd())).whole()
    assert json.dumps(whole, ensure_ascii=False).encode()
    assert whole["value"]["kind"] == "avro"


def test_values_that_are_nested_deeply_are_shown_and_filtered() -> None:
    for depth in range(900, 1000, 7):
        nested = view(Record(1, None, b"[" * depth + b"]" * depth))
        assert nested.whole()["value"]["text"]
        assert Filter("text(value) == 'x' or value[*] == value", now_ms=1).matches(nested) in (True, False)


def test_header_names_that_are_not_utf_8_can_be_sent() -> None:
    row = view(Record(1, None, None, ((b"\xff".decode(errors="surrogateescape"), b"v"),))).row()
    assert json.dumps(row, ensure_ascii=False).encode()


def test_states_of_transactions_are_in_the_row() -> None:
    row = view(Record(1, None, None), state=State.MARKER, producer_id=5, note="COMMIT").row()
    assert (row["state"], row["producer_id"], row["note"]) == ("marker", 5, "COMMIT")


def test_records_of_kafkas_own_topics_are_decoded() -> None:
    from kaspar.groups.offsets.records import OffsetCommitKey, OffsetCommitValue, write_commit

    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=12, metadata="", commit_timestamp=5)
    octets = write_commit(key, value)
    assert octets is not None
    stored = StoredRecord(TopicPartition("__consumer_offsets", 1), Record(1, *octets), False)
    row = RecordView(stored, Decoding()).row()
    assert row["key"]["kind"] == "internal"
    assert json.loads(row["key"]["text"])["group"] == "g"
    assert json.loads(row["value"]["text"])["offset"] == 12
