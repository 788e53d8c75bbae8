"""Texts that try to make the parser fail, wait or grow: each is refused with a sentence, or accepted, soon."""

import pytest

from kaspar.schemas import InvalidSchema
from kaspar.schemas.avro import parse
from kaspar.schemas.avro.parser import MAX_NAMED_TYPES
from kaspar.schemas.jackson import MAX_CHARACTERS, MAX_DEPTH
from tests.unit.schemas.avro.cases import INT, enumeration, field, fixed, record


def nested_arrays(depth: int) -> str:
    return '{"type":"array","items":' * depth + INT + "}" * depth


def forward_chain(length: int) -> str:
    """Each record uses the next one before it is defined, so that their canonical text is nested."""
    chained = [record(field("n", f'["null","R{number + 1}"]'), name=f"R{number}") for number in range(length)]
    uses = [field(f"f{number}", text) for number, text in enumerate([*chained, record(name=f"R{length}")])]
    return record(*uses)


def chained_defaults(length: int) -> str:
    """Each default is a record, whose field has such a default, too."""
    chained = [record(field("n", f'"R{number + 1}"', ',"default":{}'), name=f"R{number}") for number in range(length)]
    return "[" + ",".join([*chained, record(name=f"R{length}")]) + "]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nested_arrays(MAX_DEPTH + 1), "nested deeper"),
        ("[" * 1_000_000, "nested deeper"),
        ('{"a":' * 300_000, "nested deeper"),
        (forward_chain(MAX_DEPTH), "nested deeper"),
        (chained_defaults(1_000), "A default is nested deeper"),
        ('{"type":"int","x":' + "9" * 5_000 + "}", "digits"),
        ('{"type":"int","x":0.' + "9" * 5_000 + "}", "characters"),
        ('{"type":"int","x":-Infinity}', "not a value"),
        ('{"type":"int","x":"\\ud800"}', "surrogate"),
        ('{"type":"int","\udc00":1}', "surrogate"),
        ('{"type":"int","x":"\n"}', "not JSON"),
        ('"' + '\\"' * 500_000, "not terminated"),
        ("/*" * 500_000, "not terminated"),
        ('"' + "a" * MAX_CHARACTERS + '"', "characters"),
        ("\ufeff" + INT, "not JSON"),
        ("\x00", "not JSON"),
        (record(name="R" * 100_000 + "-"), "Illegal character"),
    ],
    ids=lambda text: text[:20].encode("ascii", "backslashreplace").decode(),
)
def test_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(text, {})
    assert message in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_the_deepest_allowed_schema_can_be_stored_and_read_again() -> None:
    schema = parse(nested_arrays(MAX_DEPTH), {})
    assert parse(schema.canonical, {}).normalized == schema.normalized == schema.canonical


def test_named_types_are_bounded() -> None:
    text = "[" + ",".join(fixed(1, name=f"F{number}") for number in range(MAX_NAMED_TYPES + 1)) + "]"
    with pytest.raises(InvalidSchema, match=f"more than {MAX_NAMED_TYPES} named types"):
        parse(text, {})


def test_schema_and_references_are_bounded_together() -> None:
    comment = "/*" + " " * (MAX_CHARACTERS // 2) + "*/"
    with pytest.raises(InvalidSchema, match="references have more than"):
        parse(comment + '"A"', {"A": comment + record(name="A")})


def test_defaults_that_double_at_each_level_are_checked_once() -> None:
    innermost = record(field("v", INT, ',"default":1'), name="R0")
    references = {"R0": innermost} | {
        f"R{level}": record(*(field(name, f'"R{level - 1}"', ',"default":{}') for name in ("a", "b")), name=f"R{level}")
        for level in range(1, 60)
    }
    assert parse('"R59"', references).name == "R59"


def test_defaults_that_fail_in_every_branch_are_checked_once() -> None:
    """Both branches lead to the same record, which has no default for its field."""
    levels = [
        record(field("u", f'["A{level + 1}","B{level + 1}"]', ',"default":{}'), name=f"{kind}{level}")
        for level in range(40)
        for kind in "AB"
    ]
    last = [record(field("v", INT), name="A40"), record(field("v", INT), name="B40")]
    text = "[" + ",".join((*levels, *last)) + "]"
    with pytest.raises(InvalidSchema):
        parse(text, {})


def test_wide_schemas_are_accepted() -> None:
    many_fields = record(*(field(f"f{number}", INT) for number in range(10_000)))
    many_symbols = enumeration(*(f"S{number}" for number in range(10_000)))
    assert parse(many_fields, {}).canonical == many_fields
    assert parse(many_symbols, {}).canonical == many_symbols
