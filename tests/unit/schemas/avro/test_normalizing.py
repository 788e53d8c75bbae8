"""The text after Confluent's `normalize`."""

import pytest

from kaspar.schemas.avro import parse
from tests.unit.schemas.avro.cases import BYTES, INT, enumeration, field, record


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ('{"type":"string","z":1,"a":{"d":1,"c":[{"f":1,"e":2}]}}',
         '{"type":"string","a":{"c":[{"e":2,"f":1}],"d":1},"z":1}'),
        ('{"type":"bytes","scale":2,"a":1,"precision":4,"logicalType":"decimal"}',
         '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}'),
        ('{"type":"bytes","scale":0,"precision":4,"logicalType":"decimal"}',
         '{"type":"bytes","logicalType":"decimal","precision":4,"scale":0}'),
        ('{"type":"long","b":1,"a":2,"logicalType":"timestamp-millis"}',
         '{"type":"long","logicalType":"timestamp-millis","a":2,"b":1}'),
        ('{"type":"string","b":1,"a":2,"logicalType":"timestamp-millis"}',
         '{"type":"string","a":2,"b":1,"logicalType":"timestamp-millis"}'),
        ('{"type":"array","z":1,"items":"int","a":2}', '{"type":"array","items":"int","a":2,"z":1}'),
        ('{"type":"record","name":"R","namespace":"n","doc":"","aliases":["C","B"],"z":1,"fields":[]}',
         '{"type":"record","name":"R","namespace":"n","fields":[],"z":1,"aliases":["B","C"]}'),
        (enumeration("B", "A", attributes=',"default":"A"'), enumeration("B", "A", attributes=',"default":"A"')),
        ('{"type":"fixed","name":"F","a":1,"size":16,"logicalType":"uuid"}',
         '{"type":"fixed","name":"F","size":16,"logicalType":"uuid","a":1}'),
        (record(field("a", INT, ',"z":1,"b":2,"aliases":["y","x"],"order":"ascending","doc":""')),
         record(field("a", INT, ',"doc":"","aliases":["x","y"],"b":2,"z":1'))),
        # Numbers get the precision of their type.
        (record(field("a", '"double"', ',"default":1'), field("b", '"float"', ',"default":0.1')),
         record(field("a", '"double"', ',"default":1.0'), field("b", '"float"', ',"default":0.1'))),
        (record(field("a", '"float"', ',"default":16777217'), field("b", BYTES, ',"default":"\u00ff"')),
         record(field("a", '"float"', ',"default":1.6777216E7'), field("b", BYTES, ',"default":"\u00ff"'))),
        # Confluent loses a default that is of another branch than the first one.
        (record(field("a", '["null","int"]', ',"default":1'), field("b", '["null","int"]', ',"default":null')),
         record(field("a", '["null","int"]'), field("b", '["null","int"]', ',"default":null'))),
        (record(field("a", '{"type":"map","values":"double"}', ',"default":{"y":1,"x":2}')),
         record(field("a", '{"type":"map","values":"double"}', ',"default":{"x":2.0,"y":1.0}'))),
        (record(field("a", record(field("c", INT), field("b", '"long"'), name="Q"), ',"default":{"c":1,"b":2}')),
         record(field("a", record(field("c", INT), field("b", '"long"'), name="Q"), ',"default":{"b":2,"c":1}'))),
    ],
    ids=lambda text: text[:50],
)  # fmt: skip
def test_what_has_no_order_is_sorted(text: str, normalized: str) -> None:
    schema = parse(text, {})
    assert schema.normalized == normalized
    assert parse(normalized, {}).normalized == normalized


def test_referenced_types_stay_names() -> None:
    schema = parse(record(field("q", '"n.Q"', ',"b":1,"a":2')), {"n.Q": record(name="n.Q")})
    assert schema.normalized == record(field("q", '"n.Q"', ',"a":2,"b":1'))
