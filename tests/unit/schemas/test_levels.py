"""Which versions each compatibility level compares with a new schema, and the messages of a refusal."""

from collections.abc import Iterator

import pytest

from kaspar.schemas import ParsedSchema
from kaspar.schemas.avro import parse
from kaspar.schemas.levels import DIFFERENT_TYPE, CompatibilityLevel, EarlierVersion, check, escaped
from kaspar.schemas.schema import SchemaType

INT, LONG, STRING = (parse(f'"{kind}"', {}) for kind in ("int", "long", "string"))
LEVELS = CompatibilityLevel


class Other:
    """A schema of another type."""

    type = SchemaType.JSON
    canonical = normalized = "{}"
    name = None

    def formatted(self, form: str) -> str:
        return self.canonical


def history(*oldest_first: ParsedSchema) -> Iterator[EarlierVersion]:
    for version, schema in reversed(list(enumerate(oldest_first, start=1))):
        yield EarlierVersion(version, schema)


def mismatch(reader: str, writer: str, kinds: str) -> str:
    reader_kind, writer_kind = kinds.split()
    return (
        f"{{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the {reader} schema does not "
        f"match with the {writer} schema', additionalInfo:'reader type: {reader_kind} not compatible with writer "
        f"type: {writer_kind}'}}"
    )


@pytest.mark.parametrize(
    ("level", "earlier", "new", "is_compatible"),
    [
        (LEVELS.NONE, [STRING], INT, True),
        (LEVELS.BACKWARD, [], INT, True),
        (LEVELS.BACKWARD, [INT], LONG, True),
        (LEVELS.BACKWARD, [LONG], INT, False),
        (LEVELS.BACKWARD, [STRING, INT], LONG, True),
        (LEVELS.BACKWARD_TRANSITIVE, [STRING, INT], LONG, False),
        (LEVELS.BACKWARD_TRANSITIVE, [INT, LONG], LONG, True),
        (LEVELS.FORWARD, [LONG], INT, True),
        (LEVELS.FORWARD, [INT], LONG, False),
        (LEVELS.FORWARD, [STRING, LONG], INT, True),
        (LEVELS.FORWARD_TRANSITIVE, [STRING, LONG], INT, False),
        (LEVELS.FULL, [INT], INT, True),
        (LEVELS.FULL, [INT], LONG, False),
        (LEVELS.FULL, [LONG], INT, False),
        (LEVELS.FULL, [STRING, INT], INT, True),
        (LEVELS.FULL_TRANSITIVE, [STRING, INT], INT, False),
        (LEVELS.FULL_TRANSITIVE, [INT, INT], INT, True),
    ],
)
def test_which_versions_are_compared(
    level: CompatibilityLevel, earlier: list[ParsedSchema], new: ParsedSchema, is_compatible: bool
) -> None:
    assert (check(level, new, history(*earlier)) == []) == is_compatible


def test_the_messages_of_backward_name_the_new_schema_as_the_reader() -> None:
    assert check(LEVELS.BACKWARD, INT, history(INT, LONG)) == [
        mismatch("new", "old", "INT LONG"),
        "{oldSchemaVersion: 2}",
        "{oldSchema: '\"long\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


def test_the_messages_of_forward_name_the_old_schema_as_the_reader() -> None:
    assert check(LEVELS.FORWARD_TRANSITIVE, LONG, history(INT, LONG)) == [
        mismatch("old", "new", "INT LONG"),
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'false', compatibility: 'FORWARD_TRANSITIVE'}",
    ]


def test_the_messages_of_full_have_both_directions() -> None:
    assert check(LEVELS.FULL, STRING, history(INT)) == [
        mismatch("old", "new", "INT STRING"),
        mismatch("new", "old", "STRING INT"),
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'false', compatibility: 'FULL'}",
    ]


def test_full_does_not_describe_the_old_schema_if_only_it_cannot_read() -> None:
    assert check(LEVELS.FULL, LONG, history(INT)) == [
        mismatch("old", "new", "INT LONG"),
        "{validateFields: 'false', compatibility: 'FULL'}",
    ]


@pytest.mark.parametrize("level", [level for level in LEVELS if level is not LEVELS.NONE])
def test_another_type_of_schema_is_incompatible(level: CompatibilityLevel) -> None:
    assert check(level, Other(), history(INT)) == [
        DIFFERENT_TYPE,
        f"{{validateFields: 'false', compatibility: '{level.value}'}}",
    ]


def test_without_a_version_none_is_named() -> None:
    messages = check(LEVELS.BACKWARD, INT, [EarlierVersion(None, LONG)])
    assert messages[1:] == ["{oldSchema: '\"long\"'}", "{validateFields: 'false', compatibility: 'BACKWARD'}"]


def test_a_long_schema_is_cut() -> None:
    old = parse('{"type":"string","x":"' + "y" * 20_000 + '"}', {})
    assert check(LEVELS.BACKWARD, INT, history(old))[2] == f"{{oldSchema: <truncated> '{old.canonical[:10_240]}...'}}"


def test_errors_of_fields_come_first() -> None:
    assert check(LEVELS.BACKWARD, LONG, history(INT), validate_fields=True, field_errors=["a reserved field"]) == [
        "a reserved field",
        "{validateFields: 'true', compatibility: 'BACKWARD'}",
    ]


@pytest.mark.parametrize(("level", "parsed"), [(LEVELS.BACKWARD, [3]), (LEVELS.BACKWARD_TRANSITIVE, [3, 2, 1])])
def test_no_more_versions_are_parsed_than_needed(level: CompatibilityLevel, parsed: list[int]) -> None:
    seen = []

    def earlier() -> Iterator[EarlierVersion]:
        for one in history(INT, INT, INT):
            seen.append(one.version)
            yield one

    check(level, INT, earlier())
    assert seen == parsed


def test_percent_signs_of_a_schema_are_kept() -> None:
    """Names have none, but paths of JSON Schema and the text of a schema may."""
    reader = parse('{"type":"record","name":"R","fields":[{"name":"a","type":"int","aliases":["b"]}]}', {})
    fields = '{"name":"a","type":"int","doc":"%s %d %"},{"name":"b","type":"int"}'
    writer = parse(f'{{"type":"record","name":"R","fields":[{fields}]}}', {})
    assert writer.canonical in check(LEVELS.BACKWARD, reader, history(writer))[0]
    assert escaped("100%s") == "100%%s"


def test_levels_are_found_by_names_in_any_case() -> None:
    assert CompatibilityLevel.of("full_Transitive") is LEVELS.FULL_TRANSITIVE
    assert CompatibilityLevel.of("SIDEWAYS") is None
