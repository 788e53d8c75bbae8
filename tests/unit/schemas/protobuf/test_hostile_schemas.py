"""Whatever a stranger registers as a schema is refused with a sentence, or accepted, within a bounded time."""

import base64
from collections.abc import Iterable

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from kaspar.schemas import InvalidSchema
from kaspar.schemas.protobuf import incompatibilities, parse
from kaspar.schemas.protobuf.sources import MAX_BYTES, MAX_FILES

PROTO3 = 'syntax = "proto3";'
MEGABYTE = 1 << 20


def described(file: FileDescriptorProto | bytes) -> str:
    return base64.b64encode(file if isinstance(file, bytes) else file.SerializeToString()).decode()


def nested_descriptor(depth: int) -> str:
    message = DescriptorProto(name="M")
    for _ in range(depth):
        message = DescriptorProto(name="M", nested_type=[message])
    return described(FileDescriptorProto(message_type=[message]))


def with_option(option: bytes) -> str:
    """A message with the bytes of a custom option."""
    message = DescriptorProto(name="M")
    message.options.MergeFromString(option)
    return described(FileDescriptorProto(dependency=["confluent/meta.proto"], message_type=[message]))


# The text and a part of what is said about it.
REFUSED = {
    "a megabyte of nested messages": (
        PROTO3 + "message M{" * (MEGABYTE // 11) + "}" * (MEGABYTE // 11),
        "recursion limit",
    ),
    "a megabyte of opening braces": ("message M{" * (MEGABYTE // 10), "recursion limit"),
    "a megabyte of nested values": (f"{PROTO3} option (x) = {'{x:' * (MEGABYTE // 3)}", "aggregate"),
    "a comment without an end": ("/*" + "x" * MEGABYTE, "comment"),
    "a name of a megabyte": (f"{PROTO3} message {'M' * MEGABYTE} {{}}", "Name too long"),
    "a nested descriptor": (nested_descriptor(80), "recursion limit"),
    "a field number that is too large": (f"{PROTO3} message M {{ int32 a = 536870912; }}", "536870911"),
    "a field number of many digits": (f"{PROTO3} message M {{ int32 a = {'9' * 1000}; }}", "out of range"),
    "a field number of protobuf's own": (f"{PROTO3} message M {{ int32 a = 19000; }}", "19000"),
    "a field number twice": (f"{PROTO3} message M {{ int32 a = 1; int32 b = 1; }}", "has already been used"),
    "an unknown type": (f"{PROTO3} message M {{ Unknown a = 1; }}", '"Unknown" is not defined'),
    "an unknown type in a descriptor": (
        described(b'"\r\n\x01M\x12\x08\n\x01a\x18\x01 \x01(\x0b'),
        "default",
    ),
    "an import of itself": (f'{PROTO3} import "default";', "recursively imports itself"),
    "a missing import": (f'{PROTO3} import "missing.proto";', "missing.proto: File not found"),
    "an import of a file of the machine": (f'{PROTO3} import "/etc/passwd";', "File not found"),
    "an import from another folder": (f'{PROTO3} import "../../../etc/passwd";', "not allowed"),
    "an import of an installed package": (f'{PROTO3} import "grpc_tools/protoc.py";', "File not found"),
    "a default that is not UTF-8": (
        r'syntax = "proto2"; message M { optional string a = 1 [default = "\xff"]; }',
        "not valid UTF-8",
    ),
    "a NUL character": (f"{PROTO3} message M {{\0}}", "NUL"),
    "half of a character": (f"{PROTO3} // \ud800", "Unicode"),
    "text of no language": ("hello", "Expected top-level statement"),
    "base64 of something else": (described(b"\x07" * 300), "Expected top-level statement"),
    "base64 of a message of unknown fields": (described(b"\xa2\x06\x01x"), "Expected top-level statement"),
    "a package that is not UTF-8": (described(b"\x12\x01\xff"), "UTF-8"),
    "an option that is not UTF-8": (described(b"\x42\x03\x0a\x01\xff"), "UTF-8"),
    "a reserved name that is not UTF-8": (described(b'"\x06\n\x01M\x52\x01\xff'), "UTF-8"),
    # protoc checks the strings of a custom option with an assertion.
    "a custom option that ends protoc": (with_option(b"\x82\x44\x03\x0a\x01\xff"), "killed by SIGABRT"),
    "an explicit map entry that is none": (
        f"{PROTO3} message M {{ message E {{ option map_entry = true; string key = 1; }} repeated E e = 1; }}",
        "map_entry should not be set explicitly",
    ),
    "too much text": (f"// {'x' * MAX_BYTES}", "more than"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_schema_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(text, {})
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 5000
    assert "kaspar-protoc" not in str(refused.value), "the message shows a path of this machine"


ACCEPTED = {
    "many messages": PROTO3 + "".join(f"message M{n} {{ string a = 1; }}" for n in range(2_000)),
    "many maps": f"{PROTO3} message M {{ {''.join(f'map<string, M> m{n} = {n};' for n in range(1, 2_000))} }}",
    "many values": f"{PROTO3} enum E {{ Z = 0; {''.join(f'V{n} = {n};' for n in range(1, 10_000))} }}",
    "many fields in deep scopes": PROTO3
    + "message M {" * 25
    + "".join(f"M f{n} = {n};" for n in range(1, 2_000))
    + "}" * 25,
    "a default of a megabyte": f'message M {{ optional string a = 1 [default = "{"x" * MEGABYTE}"]; }}',
    "an empty file": "",
    "a custom option that is not known": with_option(b"\x88\x44\x03"),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_large_schema_is_parsed_printed_and_compared(text: str) -> None:
    schema = parse(text, {})
    assert parse(schema.canonical, {}).canonical == schema.canonical
    assert parse(schema.normalized, {}).normalized == schema.normalized
    assert incompatibilities(schema, schema) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../d.proto",
        "a/../../d.proto",
        "./d.proto",
        "a//d.proto",
        "a\\d.proto",
        "a/",
        "d\0.proto",
        "d\n",
    ],
)
def test_reference_whose_name_is_no_import_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchema, match="not a valid name of an import"):
        parse("message M {}", {name: "message D {}"})


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "a/b.proto"], "inside of another reference"),
        (["x" * 300], "File name too long"),
        ((f"f{n}.proto" for n in range(MAX_FILES + 1)), "more than"),
    ],
    ids=["a file as a folder", "a name that is too long", "too many"],
)
def test_references_that_no_folder_could_hold_are_refused(names: Iterable[str], reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse("message M {}", dict.fromkeys(names, ""))


def test_references_that_import_each_other_are_refused() -> None:
    references = {"a.proto": 'import "b.proto";', "b.proto": 'import "a.proto";'}
    with pytest.raises(InvalidSchema, match="recursively imports itself"):
        parse('import "a.proto";', references)


def test_reference_cannot_replace_a_file_of_protobufs_own() -> None:
    name = "google/protobuf/descriptor.proto"
    schema = parse(f'import "{name}"; message M {{}}', {name: "package google.protobuf; message FileOptions {}"})
    assert len(schema.files()[0].message_type) > 20


def test_long_chain_of_imports_is_followed() -> None:
    chain = {f"f{n}.proto": f'import "f{n - 1}.proto"; message M{n} {{}}' for n in range(1, 500)}
    schema = parse('import "f499.proto"; message M {}', {"f0.proto": "", **chain})
    assert len(schema.files()) == 501
