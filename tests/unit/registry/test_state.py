"""What replay makes of records, also of those that this registry does not write."""

import logging

import pytest

from kaspar.registry import records
from kaspar.registry.entities import SchemaReference
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.records import SchemaValue
from kaspar.registry.state import State


def replayed(*written: LogRecord) -> State:
    state = State()
    for offset, (key, value) in enumerate(written):
        state.replay(key, value, offset, 1_000 + offset)
    return state


def schema(subject: str, version: int, schema_id: int, text: str = '"int"', *, deleted: bool = False) -> LogRecord:
    return records.schema_record(SchemaValue(subject, version, schema_id, schema=text, deleted=deleted))


def test_id_that_belongs_to_another_schema_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """Two registries that lead at once can write it; Confluent's keeps the first, too."""
    with caplog.at_level(logging.ERROR):
        state = replayed(schema("a", 1, 1, '"int"'), schema("b", 1, 1, '"long"'))
    assert not state.has_subject("b", deleted=True)
    assert "belongs to another schema" in caplog.text


def test_one_schema_with_different_white_space_keeps_its_id() -> None:
    """Karapace writes the text of the client."""
    state = replayed(schema("a", 1, 1, '{"type":"int"}'), schema("b", 1, 1, '{"type": "int"}'))
    assert {stored.subject for stored in state.index(".").with_id(1)} == {"a", "b"}


def test_same_id_in_another_context_is_another_schema() -> None:
    state = replayed(schema("a", 1, 1, '"int"'), schema(":.eu:a", 1, 1, '"long"'))
    assert state.has_subject(":.eu:a", deleted=False)


def test_text_of_one_schema_is_kept_once() -> None:
    state = replayed(*(schema(f"s{number}", 1, 1, '{"type":"int","doc":"long"}') for number in range(3)))
    assert len({id(stored.value.schema) for stored in state.index(".").with_id(1)}) == 1


def test_deleted_subject_has_only_deleted_versions() -> None:
    state = replayed(schema("a", 1, 1), schema("a", 2, 2, '"long"'), records.delete_subject_record("a", 2))
    assert not state.has_subject("a", deleted=False)
    assert [stored.version for stored in state.versions("a").oldest_first()] == [1, 2]


def test_versions_after_a_deletion_are_live() -> None:
    state = replayed(schema("a", 1, 1), records.delete_subject_record("a", 1), schema("a", 2, 2, '"long"'))
    latest = state.versions("a").latest_live()
    assert latest is not None
    assert latest.version == 2


def test_deletion_does_not_reach_versions_above_its_own() -> None:
    state = replayed(schema("a", 1, 1), schema("a", 5, 2, '"long"'), records.delete_subject_record("a", 3))
    assert [stored.version for stored in state.versions("a").newest_first()] == [5]


def test_clearing_forgets_what_is_deleted() -> None:
    state = replayed(
        schema("a", 1, 1, deleted=True),
        schema("b", 1, 2, '"long"'),
        schema(":.eu:a", 1, 1, deleted=True),
        records.clear_subject_record(None),
    )
    assert list(state.subjects_with_prefix(":*:")) == ["b"]


def test_clearing_a_context_leaves_the_others() -> None:
    state = replayed(
        schema("a", 1, 1, deleted=True),
        schema(":.eu:a", 1, 1, deleted=True),
        records.clear_subject_record(":.eu:"),
    )
    assert list(state.subjects_with_prefix(":*:")) == ["a"]


def test_tombstone_of_what_is_not_there_changes_nothing() -> None:
    state = replayed(
        records.schema_tombstone("a", 1),
        records.config_record("a", None),
        records.mode_record(None, None),
        records.context_tombstone(".x"),
        records.noop_record(),
    )
    assert state == State()


def test_overwritten_version_leaves_no_trace_in_the_indexes() -> None:
    """An import may write a version again."""
    state = replayed(schema("a", 1, 1, '"int"'), schema("a", 1, 2, '"long"'))
    assert state == replayed(schema("a", 1, 2, '"long"'))
    assert state.index(".").any_with_id(1) is None


def test_referrers_follow_their_versions() -> None:
    def referring(*, deleted: bool) -> LogRecord:
        references = (SchemaReference("b", "b", 1),)
        return records.schema_record(SchemaValue("a", 1, 2, references=references, schema='"b"', deleted=deleted))

    state = replayed(schema("b", 1, 1), referring(deleted=False))
    assert state.referrers("b", 1) == {("a", 1)}
    state.replay(*referring(deleted=True), 2, 0)
    assert state.referrers("b", 1) == set()
    state.replay(*referring(deleted=False), 3, 0)
    state.replay(*records.schema_tombstone("a", 1), 4, 0)
    assert state.referrers("b", 1) == set()


def test_highest_id_is_remembered_after_its_schema_is_deleted() -> None:
    state = replayed(schema("a", 1, 7), records.schema_tombstone("a", 1))
    assert state.index(".").max_id == 7


def test_prefixes_of_subjects() -> None:
    state = replayed(
        *(schema(name, 1, 1) for name in ("ab", "a", "b", ":.eu:a", ":.eu:b", ":.us:a")),
        records.context_record(".eu"),
        records.context_record(".us"),
    )
    found = {
        prefix: list(state.subjects_with_prefix(prefix))
        for prefix in ("", "a", ":.eu:", ":.eu:a", ":.:", ":.:b", ":*:", ":*:a", "x")
    }
    assert found == {
        "": ["a", "ab", "b"],
        "a": ["a", "ab"],
        ":.eu:": [":.eu:a", ":.eu:b"],
        ":.eu:a": [":.eu:a"],
        ":.:": ["a", "ab", "b"],
        ":.:b": ["b"],
        ":*:": [":.eu:a", ":.eu:b", ":.us:a", "a", "ab", "b"],
        ":*:a": [":.eu:a", ":.us:a", "a", "ab"],
        "x": [],
    }
