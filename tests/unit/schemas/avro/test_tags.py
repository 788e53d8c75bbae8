"""Tags of records and fields."""

import pytest

from kaspar.schemas import Entity, EntityType, InvalidSchema
from kaspar.schemas.avro import parse
from kaspar.schemas.avro.tags import tags_of, with_tags

NESTED = """
[
  "null",
  {
    "type": "record", "name": "A", "namespace": "one",
    "fields": [
      {"name": "same", "type": {"type": "record", "name": "B", "fields": [{"name": "x", "type": "int"}]}},
      {"name": "array", "type": {"type": "array", "items": {
        "type": "record", "name": "C", "namespace": "two", "fields": [
          {"name": "map", "type": {"type": "map", "values": {"type": "record", "name": "three.D", "fields": [
            {"name": "y", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0}
          ]}}}
        ]
      }}},
      {"name": "again", "type": "B"}
    ]
  }
]
"""
FIELDS = ["one.A.same", "one.B.x", "one.A.array", "two.C.map", "three.D.y", "one.A.again"]
RECORDS = ["one.A", "one.B", "two.C", "three.D"]


@pytest.mark.parametrize(
    "entity",
    [
        *(Entity(path, EntityType.FIELD) for path in FIELDS),
        *(Entity(path, EntityType.RECORD) for path in RECORDS),
    ],
)
def test_every_record_and_field_is_found_by_its_path(entity: Entity) -> None:
    text = parse(NESTED, {}).canonical
    tagged = with_tags(text, {entity: ["B", "A"]}, {})
    assert parse(tagged, {}).canonical == tagged
    assert tags_of(tagged) == {entity: ("B", "A")}
    assert with_tags(tagged, {}, {entity: ["A"]}) == with_tags(text, {entity: ["B"]}, {})
    assert with_tags(tagged, {}, {entity: ["A", "B"]}) == text


@pytest.mark.parametrize("path", ["A", "one.A.nothing", "B.x", "one.C", "", "."])
def test_path_of_nothing_is_refused(path: str) -> None:
    text = parse(NESTED, {}).canonical
    with pytest.raises(InvalidSchema, match="No matching path"):
        with_tags(text, {Entity(path, EntityType.FIELD): ["A"]}, {})


def test_numbers_keep_their_form() -> None:
    text = parse(
        '{"type":"record","name":"A","fields":[{"name":"x","type":"double","default":1e30},{"name":"y","type":"long",'
        '"default":9007199254740993}]}',
        {},
    ).canonical
    entity = Entity("A.x", EntityType.FIELD)
    assert with_tags(with_tags(text, {entity: ["T"]}, {}), {}, {entity: ["T"]}) == text


def test_attribute_that_is_no_list_of_tags_counts_as_none() -> None:
    text = parse('{"type":"record","name":"A","confluent:tags":7,"fields":[]}', {}).canonical
    assert tags_of(text) == {}
