"""What is an Avro schema, and its canonical text."""

import pytest

from kaspar.schemas import InvalidSchema, SchemaType
from kaspar.schemas.avro import parse
from tests.unit.schemas.avro.cases import (
    ACCEPTED,
    INT,
    REFUSED,
    STRING,
    Accepted,
    Refused,
    enumeration,
    field,
    fixed,
    record,
)

ADDRESS = record(field("zip", fixed(5, name="Zip")), name="shop.Address")
CUSTOMER = record(field("home", '"shop.Address"'), name="shop.Customer")


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.text[:60])
def test_the_canonical_text_has_javas_form(case: Accepted) -> None:
    schema = parse(case.text, {})
    assert schema.canonical == case.canonical
    assert parse(schema.canonical, {}).type is SchemaType.AVRO


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.text[:60])
def test_what_java_refuses_is_refused_with_a_sentence(case: Refused) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(case.text, {})
    assert case.message in str(refused.value)


def test_only_a_record_has_a_name() -> None:
    assert parse(ADDRESS, {}).name == "shop.Address"
    assert [parse(text, {}).name for text in (STRING, enumeration("A"), f"[{ADDRESS}]")] == [None, None, None]


class TestReferences:
    def test_their_types_stay_names_in_the_canonical_text(self) -> None:
        schema = parse(CUSTOMER, {"shop.Address": ADDRESS})
        assert schema.canonical == (
            '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"home","type":"Address"}]}'
        )

    def test_the_resolved_form_has_them_in_full(self) -> None:
        schema = parse(CUSTOMER, {"shop.Address": ADDRESS})
        assert schema.formatted("resolved") == (
            '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"home","type":'
            '{"type":"record","name":"Address","fields":[{"name":"zip","type":'
            '{"type":"fixed","name":"Zip","size":5}}]}}]}'
        )

    def test_types_within_a_referenced_type_are_known_but_written_in_full(self) -> None:
        schema = parse(record(field("z", '"shop.Zip"')), {"shop.Address": ADDRESS})
        assert schema.canonical == record(field("z", '{"type":"fixed","name":"Zip","namespace":"shop","size":5}'))

    def test_a_reference_can_use_earlier_ones(self) -> None:
        references = {"shop.Address": ADDRESS, "shop.Customer": CUSTOMER}
        assert parse('["null","shop.Customer"]', references).canonical == '["null","shop.Customer"]'

    @pytest.mark.parametrize(
        ("text", "references", "message"),
        [
            (CUSTOMER, {}, "Undefined schema: shop.Address"),
            (CUSTOMER, {"shop.Order": CUSTOMER, "shop.Address": ADDRESS}, "Undefined schema: shop.Address"),
            (ADDRESS, {"shop.Address": ADDRESS}, "Can't redefine: shop.Address"),
            (STRING, {"broken": "{"}, "not JSON"),
        ],
        ids=["missing", "in the wrong order", "defined again", "invalid"],
    )
    def test_wrong_references_are_refused(self, text: str, references: dict[str, str], message: str) -> None:
        with pytest.raises(InvalidSchema, match=message):
            parse(text, references)


@pytest.mark.parametrize("form", ["", "unknown", "RESOLVED", "serialized"])
def test_an_unknown_form_is_the_canonical_text(form: str) -> None:
    schema = parse(CUSTOMER, {"shop.Address": ADDRESS})
    assert schema.formatted(form) == schema.canonical


def test_a_stored_schema_may_have_a_default_of_another_type() -> None:
    text = record(field("a", INT, ',"default":"none"'))
    assert parse(text, {}, validate_defaults=False).canonical == text
