"""Schemas and pairs of schemas with what Java's library makes of them. A test beside that library uses them, too."""

from typing import NamedTuple


class Accepted(NamedTuple):
    text: str
    canonical: str


class Refused(NamedTuple):
    text: str
    message: str


class Compared(NamedTuple):
    """A reader and a writer, with kind, path and detail of each incompatibility."""

    name: str
    reader: str
    writer: str
    found: list[tuple[str, str, str]]


def record(*fields: str, name: str = "R", attributes: str = "") -> str:
    return f'{{"type":"record","name":"{name}","fields":[{",".join(fields)}]{attributes}}}'


def field(name: str, of_type: str, attributes: str = "") -> str:
    return f'{{"name":"{name}","type":{of_type}{attributes}}}'


def enumeration(*symbols: str, name: str = "E", attributes: str = "") -> str:
    return f'{{"type":"enum","name":"{name}","symbols":[{",".join(map(_quoted, symbols))}]{attributes}}}'


def fixed(size: int, name: str = "F", attributes: str = "") -> str:
    return f'{{"type":"fixed","name":"{name}","size":{size}{attributes}}}'


def array(items: str) -> str:
    return f'{{"type":"array","items":{items}}}'


def map_of(values: str) -> str:
    return f'{{"type":"map","values":{values}}}'


def _quoted(text: str) -> str:
    return f'"{text}"'


INT, LONG, STRING, BYTES, NULL = '"int"', '"long"', '"string"', '"bytes"', '"null"'

ACCEPTED = [
    # Primitives, white space, comments, escapes, and attributes that Avro ignores.
    Accepted('"string"', '"string"'),
    Accepted(' {"type" : "string"}\n', '"string"'),
    Accepted('/* of keys */ "int"', '"int"'),
    Accepted('"\\u0073tring"', '"string"'),
    Accepted('{"type":"int","doc":"d","name":"n","order":1}', '{"type":"int","order":1}'),
    # Properties keep their order; of equal keys the last one counts.
    Accepted('{"type":"long","z":1,"logicalType":"date","a":{"c":null,"b":[true]}}',
             '{"type":"long","z":1,"logicalType":"date","a":{"c":null,"b":[true]}}'),
    Accepted('{"type":"string","a":1,"b":2,"a":3}', '{"type":"string","a":3,"b":2}'),
    Accepted('{"p":{"x":1},"type":"map","default":{},"values":"int"}',
             '{"type":"map","values":"int","p":{"x":1},"default":{}}'),
    # Numbers and characters have Java's form.
    Accepted('{"type":"int","n":[1e400,1e-5,123456789.0,-0.0,0.001,1.10,1E2,12345678901234567890,1e22,9999999.0]}',
             '{"type":"int","n":["Infinity",1.0E-5,1.23456789E8,-0.0,0.001,1.1,100.0,12345678901234567890,1.0E22,'
             "9999999.0]}"),
    Accepted('{"type":"int","c":"\\u001f\\t\\b\\"\\\\/\\u00e9\\ud83d\\ude00"}',
             '{"type":"int","c":"\\u001F\\t\\b\\"\\\\/\u00e9\U0001f600"}'),
    # Attributes of named types have Java's order.
    Accepted('{"fields":[],"aliases":["B",".C","x.D","B","record"],"doc":"d","x":1,"name":"a.A","type":"record"}',
             '{"type":"record","name":"A","namespace":"a","doc":"d","fields":[],"x":1,'
             '"aliases":["B","C","x.D","a.record"]}'),
    Accepted('{"type":"error","name":"E","fields":[]}', '{"type":"error","name":"E","fields":[]}'),
    Accepted('{"default":"B","symbols":["A","B"],"namespace":"n","name":"E","type":"enum","doc":""}',
             '{"type":"enum","name":"E","namespace":"n","doc":"","symbols":["A","B"],"default":"B"}'),
    Accepted('{"type":"enum","name":"E","symbols":["A"],"default":5,"doc":7}',
             '{"type":"enum","name":"E","symbols":["A"]}'),
    Accepted('{"type":"fixed","size":16,"logicalType":"uuid","name":"F","default":"x"}',
             '{"type":"fixed","name":"F","size":16,"logicalType":"uuid","default":"x"}'),
    Accepted(record('{"default":1,"x":2,"aliases":["b","b"],"order":"IGNORE","type":"int","doc":"d","name":"a"}'),
             record('{"name":"a","type":"int","doc":"d","default":1,"order":"ignore","aliases":["b"],"x":2}')),
    Accepted(record(field("a", INT, ',"order":"ascending"')), record(field("a", INT))),
    # Defaults: any branch of a union counts; numbers may be text.
    Accepted(record(field("a", '["null","int"]', ',"default":1')),
             record(field("a", '["null","int"]', ',"default":1'))),
    Accepted(record(field("a", '"float"', ',"default":"NaN"'), field("b", '"double"', ',"default":"1.5f"')),
             record(field("a", '"float"', ',"default":"NaN"'), field("b", '"double"', ',"default":1.5'))),
    Accepted(record(field("a", '"float"', ',"default":5'), field("b", BYTES, ',"default":"\\u00ff"')),
             record(field("a", '"float"', ',"default":5'), field("b", BYTES, ',"default":"\u00ff"'))),
    Accepted(record(field("a", record(field("b", INT, ',"default":1'), name="Q"), ',"default":{}')),
             record(field("a", record(field("b", INT, ',"default":1'), name="Q"), ',"default":{}'))),
    # Names: recursion, use before the definition, namespaces that are inherited and left.
    Accepted(record(field("next", '["null","R"]', ',"default":null')),
             record(field("next", '["null","R"]', ',"default":null'))),
    Accepted(record(field("r", '{"type":"R","x":1}')), record(field("r", '"R"'))),
    Accepted(record(field("b", '"Q"'), field("c", record(name="Q"))),
             record(field("b", record(name="Q")), field("c", '"Q"'))),
    Accepted('{"type":"record","name":"x.R","namespace":"ignored","fields":[{"name":"q","type":{"type":"fixed",'
             '"name":"Q","size":1}},{"name":"r","type":"x.Q"}]}',
             '{"type":"record","name":"R","namespace":"x","fields":[{"name":"q","type":{"type":"fixed",'
             '"name":"Q","size":1}},{"name":"r","type":"Q"}]}'),
    Accepted('{"type":"record","name":"n.R","fields":[{"name":"r","type":{"type":"record","name":"Q","namespace":"",'
             '"fields":[{"name":"n","type":["null","n.R"]}]}},{"name":"q","type":"Q"}]}',
             '{"type":"record","name":"R","namespace":"n","fields":[{"name":"r","type":{"type":"record","name":"Q",'
             '"namespace":"","fields":[{"name":"n","type":["null","n.R"]}]}},{"name":"q","type":"Q"}]}'),
    Accepted('{"type":"record","name":"a.string","fields":[{"name":"x","type":["null","a.string"]}]}',
             '{"type":"record","name":"string","namespace":"a","fields":[{"name":"x","type":["null","a.string"]}]}'),
    Accepted(record(field("\u00df\u0663", INT), name="\u00e9"), record(field("\u00df\u0663", INT), name="\u00e9")),
    Accepted(record(field("a", enumeration("A")), field("b", enumeration("A"))),
             record(field("a", enumeration("A")), field("b", '"E"'))),
    Accepted("[]", "[]"),
    Accepted('["null", "int",{"type":"array","items":"int"}]', '["null","int",{"type":"array","items":"int"}]'),
]  # fmt: skip

REFUSED = [
    Refused("", "empty"),
    Refused("string", "not JSON"),
    Refused('{"type":"int",}', "not JSON"),
    Refused("{'type':'int'}", "not JSON"),
    Refused('{"type":"int","x":NaN}', "NaN"),
    Refused('"string', "not terminated"),
    Refused('"int" /* never', "not terminated"),
    Refused('"int" // after it', "dangling content"),
    Refused('{"type":"int"} x', "dangling content"),
    Refused("null", "not yet supported: null"),
    Refused("7", "not yet supported: 7"),
    Refused('"unknown"', "Undefined schema: unknown"),
    Refused("{}", "No type"),
    Refused('{"type":{"type":"string"}}', "No type"),
    Refused('{"type":["int"]}', "No type"),
    Refused('{"type":"array"}', "Array has no items type"),
    Refused('{"type":"map"}', "Map has no values type"),
    Refused('{"type":"record","fields":[]}', "No name in schema"),
    Refused('{"type":"record","name":"R"}', "Record has no fields"),
    Refused('{"type":"record","name":"R","fields":[5]}', "No field name: 5"),
    Refused(record('{"type":"int"}'), "No field name"),
    Refused(record('{"name":"a"}'), "No field type"),
    Refused(record(field("a", INT), field("a", INT)), "Duplicate field a in record R"),
    Refused(record(field("1a", INT)), "Illegal initial character: 1a"),
    Refused(record(field("a-b", INT)), "Illegal character in: a-b"),
    Refused(record(field("\U00010400", INT)), "Illegal initial character"),
    Refused(record(field("", INT)), "Empty name"),
    Refused(record(field("a", INT, ',"order":"up"')), "order"),
    Refused(record(field("a", INT, ',"order":null')), "order"),
    Refused(record(field("a", INT, ',"aliases":"b"')), "aliases not an array"),
    Refused(record(field("a", INT, ',"aliases":[1]')), "alias not a string"),
    Refused(record(name="string"), "named after primitives: string"),
    Refused(record(name="a..b"), 'Namespace part "" is invalid: Empty name'),
    Refused(record(name="1a.b"), 'Namespace part "1a" is invalid'),
    Refused(record(name="a."), "Empty name"),
    Refused(record(attributes=',"aliases":["1"]'), "Illegal initial character: 1"),
    Refused(record(field("a", fixed(1)), field("b", fixed(2))), "Can't redefine: F"),
    Refused(record(field("a", record(name="Q")), field("b", record(name="Q"))), "Can't redefine: Q"),
    Refused(record(field("a", enumeration("A")), field("b", enumeration("B"))), "Can't redefine: E"),
    Refused(record(field("a", INT, ',"default":"1"')), 'Invalid default for field a: "1" not a "int"'),
    Refused(record(field("a", INT, ',"default":5.0')), "Invalid default"),
    Refused(record(field("a", INT, ',"default":2147483648')), "Invalid default"),
    Refused(record(field("a", LONG, ',"default":9223372036854775808')), "Invalid default"),
    Refused(record(field("a", '"boolean"', ',"default":1')), "Invalid default"),
    Refused(record(field("a", '["null","int"]', ',"default":"x"')), "Invalid default"),
    Refused(record(field("a", array(INT), ',"default":["x"]')), "Invalid default"),
    Refused(record(field("a", map_of(INT), ',"default":{"k":"x"}')), "Invalid default"),
    Refused(record(field("a", record(field("b", INT), name="Q"), ',"default":{}')), "Invalid default"),
    Refused(record(field("a", '"Q"', ',"default":{}'), field("b", record(field("c", INT), name="Q"))),
            "Invalid default"),
    Refused(record(field("r", '["null","R"]', ',"default":{}')), "within its own definition"),
    Refused(record(field("a", '"double"', ',"default":"1_0"')), "no number"),
    Refused('{"type":"enum","name":"E"}', "Enum has no symbols"),
    Refused(enumeration("A", "A"), "Duplicate enum symbol: A"),
    Refused(enumeration("A-B"), "Illegal character in: A-B"),
    Refused('{"type":"enum","name":"E","symbols":[1]}', "Null name"),
    Refused(enumeration("A", attributes=',"default":"B"'), "The Enum Default: B is not in the enum symbol set: [A]"),
    Refused(fixed(-1), "size"),
    Refused(fixed(2**31 - 1), "size"),
    Refused('{"type":"fixed","name":"F","size":1.0}', "Invalid or no size"),
    Refused('["int",["string"]]', "Nested union"),
    Refused('["int","int"]', "Duplicate in union:int"),
    Refused('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', "Duplicate in union:array"),
    Refused(f'["R",{record()}]', "Duplicate in union:R"),
    Refused('{"type":"array","items":"int","big":18446744073709551616}', "64 bits"),
]  # fmt: skip

_MISMATCH = "reader type: {} not compatible with writer type: {}"

COMPARED = [
    *(
        Compared(f"{writer} promoted to {reader}", f'"{reader}"', f'"{writer}"', [])
        for reader, writers in {
            "long": ("int",),
            "float": ("int", "long"),
            "double": ("int", "long", "float"),
            "bytes": ("string",),
            "string": ("bytes",),
        }.items()
        for writer in writers
    ),
    *(
        Compared(f"{writer} read as {reader}", f'"{reader}"', f'"{writer}"',
                 [("TYPE_MISMATCH", "/", _MISMATCH.format(reader.upper(), writer.upper()))])
        for reader, writer in (("int", "long"), ("float", "double"), ("null", "int"), ("boolean", "int"),
                               ("long", "float"), ("string", "int"))
    ),
    Compared("array read as map", map_of(INT), array(INT),
             [("TYPE_MISMATCH", "/", _MISMATCH.format("MAP", "ARRAY"))]),
    Compared("within an array", array(INT), array(STRING),
             [("TYPE_MISMATCH", "/items", _MISMATCH.format("INT", "STRING"))]),
    Compared("within a map", map_of(fixed(1)), map_of(fixed(2)),
             [("FIXED_SIZE_MISMATCH", "/values/size", "expected: 2, found: 1")]),
    # Names.
    Compared("another namespace", record(name="a.R"), record(name="b.R"), []),
    Compared("another name", record(name="a.R"), record(name="a.Q"),
             [("NAME_MISMATCH", "/name", "expected: a.Q")]),
    Compared("an alias names the writer", record(name="a.R", attributes=',"aliases":["Q"]'), record(name="a.Q"), []),
    Compared("an alias of another namespace", record(name="a.R", attributes=',"aliases":["Q"]'), record(name="b.Q"),
             [("NAME_MISMATCH", "/name", "expected: b.Q")]),
    Compared("an alias of the writer does not count", record(name="R"), record(name="Q", attributes=',"aliases":["R"]'),
             [("NAME_MISMATCH", "/name", "expected: Q")]),
    Compared("name and size of a fixed", fixed(1, name="F"), fixed(2, name="G"),
             [("NAME_MISMATCH", "/name", "expected: G"), ("FIXED_SIZE_MISMATCH", "/size", "expected: 2, found: 1")]),
    # Fields.
    Compared("a field was removed", record(), record(field("a", INT)), []),
    Compared("a field was added", record(field("x", INT), field("a", INT)), record(field("x", INT)),
             [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", "a")]),
    Compared("a field with a default was added", record(field("a", INT, ',"default":1')), record(), []),
    Compared("a field with the default null was added",
             record(field("a", '["null","int"]', ',"default":null')), record(), []),
    Compared("a field was renamed, with an alias", record(field("b", LONG, ',"aliases":["a"]')),
             record(field("a", INT)), []),
    Compared("a field has another type", record(field("a", INT)), record(field("a", STRING)),
             [("TYPE_MISMATCH", "/fields/0/type", _MISMATCH.format("INT", "STRING"))]),
    Compared("a field was added whose enum has a default",
             record(field("e", enumeration("A", attributes=',"default":"A"'))), record(),
             [("TYPE_MISMATCH", "/fields/0/type", _MISMATCH.format("ENUM", "RECORD"))]),
    Compared("all incompatibilities are reported, in order",
             record(field("a", INT), field("b", fixed(1)), field("c", INT), name="R"),
             record(field("b", fixed(2, name="G")), field("c", STRING), name="Q"),
             [("NAME_MISMATCH", "/name", "expected: Q"),
              ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", "a"),
              ("NAME_MISMATCH", "/fields/1/type/name", "expected: G"),
              ("FIXED_SIZE_MISMATCH", "/fields/1/type/size", "expected: 2, found: 1"),
              ("TYPE_MISMATCH", "/fields/2/type", _MISMATCH.format("INT", "STRING"))]),
    # Enums.
    Compared("a symbol was added", enumeration("A", "B"), enumeration("A"), []),
    Compared("symbols were removed", enumeration("B"), enumeration("C", "B", "A"),
             [("MISSING_ENUM_SYMBOLS", "/symbols", "[A, C]")]),
    Compared("a default stands for removed symbols", enumeration("B", attributes=',"default":"B"'),
             enumeration("A", "B"), []),
    # Unions.
    Compared("a branch was added", '["null","int"]', INT, []),
    Compared("a branch was removed", INT, '["int","null"]',
             [("TYPE_MISMATCH", "/1", _MISMATCH.format("INT", "NULL"))]),
    Compared("a reader of all branches", LONG, '["int","long"]', []),
    Compared("branches in another order", '["null","int"]', '["int","null"]', []),
    Compared("a branch is promoted", '["null","long"]', '["null","int"]', []),
    Compared("branches are missing", '["null"]', '["int","null","string"]',
             [("MISSING_UNION_BRANCH", "/0", "reader union lacking writer type: INT"),
              ("MISSING_UNION_BRANCH", "/2", "reader union lacking writer type: STRING")]),
    Compared("no branch fits", '["null","int"]', STRING,
             [("MISSING_UNION_BRANCH", "/", "reader union lacking writer type: STRING")]),
    Compared("what is wrong within a branch is not reported",
             record(field("u", f'["null",{record(field("a", INT), name="Q")}]')),
             record(field("u", f'["null",{record(name="Q")}]')),
             [("MISSING_UNION_BRANCH", "/fields/0/type/1", "reader union lacking writer type: RECORD")]),
    Compared("an empty union has no data", INT, "[]", []),
    # Recursion.
    Compared("a recursive record", record(field("n", '["null","R"]'), field("v", LONG)),
             record(field("n", '["null","R"]'), field("v", INT)), []),
    Compared("a recursive record with an incompatible field", record(field("n", '["null","R"]'), field("v", INT)),
             record(field("n", '["null","R"]'), field("v", STRING)),
             [("TYPE_MISMATCH", "/fields/1/type", _MISMATCH.format("INT", "STRING"))]),
    Compared("a pair that is met again keeps its first path",
             record(field("a", record(field("x", INT), name="Q")), field("b", '"Q"')),
             record(field("a", record(name="Q")), field("b", '"Q"')),
             [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0/type/fields/0", "x")] * 2),
    Compared("a pair that was first met within a union has no path before it",
             record(field("a", f'["null",{record(field("x", INT), name="Q")}]'), field("b", '"Q"')),
             record(field("a", f'["null",{record(name="Q")}]'), field("b", '"Q"')),
             [("MISSING_UNION_BRANCH", "/fields/0/type/1", "reader union lacking writer type: RECORD"),
              ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", "x")]),
]  # fmt: skip
