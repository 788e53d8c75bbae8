"""Avro schemas beside Avro's Java library, which Confluent's registry uses: the same texts are accepted, with the same
canonical text, and the same pairs are incompatible for the same reasons."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings

from kaspar.schemas import InvalidSchema
from kaspar.schemas.avro import incompatibilities, parse
from kaspar.schemas.avro.compatibility import Finding, Rule
from tests.peers.avro_java import AvroJava, JavaRefused
from tests.peers.missing import unless_missing
from tests.property.avro_schemas import evolutions
from tests.unit.schemas.avro.cases import ACCEPTED, COMPARED, REFUSED, field, fixed, record

EXAMPLES = settings(
    max_examples=200,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
ADDRESS = record(field("zip", fixed(5, name="Zip")), name="shop.Address")
ORDER = record(field("to", '"shop.Address"'), field("zips", '"shop.Zip"'), name="shop.Order")


@pytest.fixture(scope="module")
def java() -> Iterator[AvroJava]:
    with unless_missing(AvroJava) as library:
        yield library


def test_canonical_text_is_javas(java: AvroJava) -> None:
    assert {text: java.parse(text).canonical for text, _ in ACCEPTED} == dict(ACCEPTED)


def test_java_refuses_the_same_texts(java: AvroJava) -> None:
    assert [text for text, _ in REFUSED if _java_accepts(java, text)] == []


def test_what_is_incompatible_is_javas(java: AvroJava) -> None:
    found = {case.name: java.compare(case.reader, case.writer) for case in COMPARED}
    assert found == {case.name: case.found for case in COMPARED}


def test_references_stay_names(java: AvroJava) -> None:
    theirs, ours = java.parse(ORDER, [ADDRESS]), parse(ORDER, {"shop.Address": ADDRESS})
    assert (ours.canonical, ours.formatted("resolved")) == (theirs.canonical, theirs.resolved)


@EXAMPLES
@given(pair=evolutions())
def test_generated_schemas_are_what_java_makes_of_them(java: AvroJava, pair: tuple[str, str]) -> None:
    for text in pair:
        try:
            canonical = parse(text, {}).canonical
        except InvalidSchema:
            assert not _java_accepts(java, text)
        else:
            assert java.parse(text).canonical == canonical


@EXAMPLES
@given(pair=evolutions())
def test_generated_pairs_are_incompatible_for_javas_reasons(java: AvroJava, pair: tuple[str, str]) -> None:
    try:
        first, second = (parse(text, {}) for text in pair)
    except InvalidSchema:
        assume(False)
        raise
    assert incompatibilities(first, second) == _messages(java.compare(*pair))
    assert incompatibilities(second, first) == _messages(java.compare(*reversed(pair)))


def _messages(found: list[tuple[str, str, str]]) -> list[str]:
    return [Finding(Rule[rule], tuple(path[1:].split("/")), detail).message() for rule, path, detail in found]


def _java_accepts(java: AvroJava, text: str) -> bool:
    try:
        java.parse(text)
    except JavaRefused:
        return False
    return True
