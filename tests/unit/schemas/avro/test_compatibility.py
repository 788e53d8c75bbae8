"""Which schemas can read each other's data, and why not."""

import pytest

from kaspar.schemas.avro import compatibility, incompatibilities, parse
from tests.unit.schemas.avro.cases import COMPARED, INT, STRING, Compared, enumeration, field, fixed, record


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_the_rules_of_java(case: Compared) -> None:
    messages = incompatibilities(parse(case.reader, {}), parse(case.writer, {}))
    assert len(messages) == len(case.found)
    for message, (rule, path, detail) in zip(messages, case.found, strict=True):
        assert message.startswith(f"{{errorType:'{rule}', description:'")
        assert f"path '{path}'" in message
        assert message.endswith(f", additionalInfo:'{detail}'}}")


@pytest.mark.parametrize(
    ("reader", "writer", "message"),
    [
        (record(), record(name="Q"),
         "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')', "
         "additionalInfo:'expected: Q'}"),
        (fixed(1), fixed(2),
         "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in the %s schema "
         "does not match with the %s schema', additionalInfo:'expected: 2, found: 1'}"),
        (enumeration("A"), enumeration("A", "B"),
         "{errorType:'MISSING_ENUM_SYMBOLS', description:'The %s schema is missing enum symbols '[B]' at path "
         "'/symbols' in the %s schema', additionalInfo:'[B]'}"),
        (record(field("a", INT)), record(),
         "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path '/fields/0' in the %s "
         "schema has no default value and is missing in the %s schema', additionalInfo:'a'}"),
        (INT, STRING,
         "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the %s schema does not match with "
         "the %s schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}"),
        ('["int"]', STRING,
         "{errorType:'MISSING_UNION_BRANCH', description:'The %s schema is missing a type inside a union field at path "
         "'/' in the %s schema', additionalInfo:'reader union lacking writer type: STRING'}"),
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_the_words_of_confluent(reader: str, writer: str, message: str) -> None:
    assert incompatibilities(parse(reader, {}), parse(writer, {})) == [message]


def test_an_alias_that_names_a_second_field_leaves_the_check_without_an_outcome() -> None:
    reader = parse(record(field("a", INT, ',"aliases":["b"]')), {})
    writer = parse(record(field("a", INT), field("b", INT, ',"doc":"100%s"')), {})
    assert incompatibilities(reader, writer) == [
        "Unexpected exception during compatibility check: Reader record field a type:INT pos:0 matches multiple fields "
        "in writer record schema " + writer.canonical.replace("%", "%%")
    ]


def test_types_of_references_are_compared() -> None:
    text = record(field("q", '"Q"'))
    reader = parse(text, {"Q": record(field("x", INT), name="Q")})
    writer = parse(text, {"Q": record(name="Q")})
    (message,) = incompatibilities(reader, writer)
    assert "path '/fields/0/type/fields/0'" in message


class TestBounds:
    def test_a_long_chain_of_records_needs_no_deep_stack(self) -> None:
        references = {"R0": record(field("v", INT), name="R0")} | {
            f"R{number}": record(field("inner", f'"R{number - 1}"'), name=f"R{number}") for number in range(1, 2_000)
        }
        changed = {**references, "R0": record(field("v", STRING), name="R0")}
        text = record(field("outermost", '"R1999"'))
        reader, writer = parse(text, references), parse(text, changed)
        (message,) = incompatibilities(reader, writer)
        assert message.count("fields") == 2_001  # one of each record, and one of the description
        assert reader.formatted("resolved").count('"record"') == 2_001

    def test_findings_that_multiply_are_cut(self) -> None:
        uses = [[field(f"f{index}", f'"R{level - 1}"') for index in range(10)] for level in range(1, 10)]
        texts = [record(field("v", "{}"), name="R0")]
        texts += [record(*fields, name=f"R{level}") for level, fields in enumerate(uses, start=1)]
        reader, writer = (
            parse(texts[-1], {"R0": texts[0].replace("{}", kind), **{text[:50]: text for text in texts[1:-1]}})
            for kind in (INT, STRING)
        )
        assert len(incompatibilities(reader, writer)) == compatibility.MAX_FINDINGS

    def test_too_many_pairs_leave_the_check_without_an_outcome(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compatibility, "MAX_PAIRS", 20)
        union = parse("[" + ",".join(record(name=f"R{number}") for number in range(10)) + "]", {})
        (message,) = incompatibilities(union, union)
        assert message.startswith("Unexpected exception during compatibility check: ")
