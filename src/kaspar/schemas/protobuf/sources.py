"""The two forms in which a Protobuf schema is registered, and how files are passed to protoc.

Most clients register the text of a .proto file; confluent-kafka-python registers the base64 of a serialized
FileDescriptorProto. References may be of either form. protoc accepts texts and descriptors together, so one run
validates both.

Java's clients print descriptors as text in which a map has its wire form: a repeated field of a nested message with the
option `map_entry`. protoc does not accept that option in a text. It is replaced by a reserved name, which protoc keeps,
and restored in the descriptor.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from kaspar.schemas.protobuf.compiler import COMPILER
from kaspar.schemas.protobuf.descriptors import FileDescriptorProto, FileDescriptorSet
from kaspar.schemas.protobuf.well_known import CONFLUENT_FILES, is_protobufs_own
from kaspar.schemas.schema import InvalidSchema

# Limits on one schema with all its references.
MAX_BYTES: Final = 8 << 20
MAX_FILES: Final = 1000

# Confluent's name of a schema's own file.
MAIN: Final = "default"

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_MAP_ENTRY_MARK: Final = "map_entry\u00a0option"
# Comments and strings come first, so that nothing in them is taken for the option.
_MAP_ENTRY: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(\boption\s+map_entry\s*=\s*true\s*;)""", re.DOTALL
)


def compile_schema(text: str, references: Mapping[str, str]) -> bytes:
    """The serialized FileDescriptorSet of a schema and all its imports, the schema's own file last."""
    _check_bounds(text, references)
    main = _unused_name(references)
    files: dict[str, str] = {}
    described = FileDescriptorSet()
    given = {name: source for name, source in references.items() if not is_protobufs_own(name)}
    for name, source in {**CONFLUENT_FILES, **given, main: text}.items():
        descriptor = _descriptor(source)
        if descriptor is None:
            files[name] = _MAP_ENTRY.sub(_marked, source) if "map_entry" in source else source
        else:
            descriptor.name = name
            descriptor.ClearField("source_code_info")
            described.file.append(descriptor)
    compiled = COMPILER.compile(main, files, described.SerializeToString())
    return _with_map_entries(compiled, main) if _MAP_ENTRY_MARK.encode() in compiled else compiled


def _check_bounds(text: str, references: Mapping[str, str]) -> None:
    try:
        size = sum(len(source.encode()) for source in (text, *references.values()))
    except UnicodeEncodeError:
        raise InvalidSchema("The schema is not valid Unicode") from None
    if size > MAX_BYTES:
        raise InvalidSchema(f"The schema and its references have {size} bytes, more than {MAX_BYTES}")
    if len(references) > MAX_FILES:
        raise InvalidSchema(f"The schema has {len(references)} references, more than {MAX_FILES}")
    if "\0" in text or any("\0" in source for source in references.values()):
        raise InvalidSchema("The schema contains a NUL character")
    for name in references:
        _check_name(name, references)


def _check_name(name: str, references: Mapping[str, str]) -> None:
    """An import's name becomes a path below one of protoc's folders, and must not lead out of it."""
    parts = name.split("/")
    if not all(parts) or not {".", ".."}.isdisjoint(parts) or "\\" in name or not name.isprintable():
        raise InvalidSchema(f'The reference "{name}" is not a valid name of an import')
    folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
    if any(folder in references for folder in folders):
        raise InvalidSchema(f'The reference "{name}" is inside of another reference')


def _unused_name(references: Mapping[str, str]) -> str:
    name = MAIN
    while any(reference == name or reference.startswith(f"{name}/") for reference in references):
        name += "_"
    return name


def _descriptor(source: str) -> Any | None:
    """The descriptor that is encoded as base64; None for anything else, which protoc then reads as text."""
    if not _BASE64.fullmatch(source):
        return None
    try:
        descriptor = FileDescriptorProto.FromString(base64.b64decode(source))
    except (binascii.Error, DecodeError):
        return None
    # Almost any bytes parse as a message of unknown fields. A descriptor has some only if its protoc is newer than
    # ours.
    if len(UnknownFieldSet(descriptor)) != 0 and not (descriptor.message_type or descriptor.enum_type):
        return None
    if not _is_unicode(descriptor):
        raise InvalidSchema("A string of the descriptor is not valid UTF-8")
    return descriptor


def _is_unicode(message: Any) -> bool:
    """Strings of proto2, the syntax of descriptors, are not checked when they are decoded. One that is not UTF-8 is
    returned as bytes."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else (value,)
        if field.message_type is not None and not all(map(_is_unicode, values)):
            return False
        if field.type == FieldDescriptor.TYPE_STRING and any(isinstance(each, bytes) for each in values):
            return False
    return True


def _marked(found: re.Match[str]) -> str:
    return f'reserved "{_MAP_ENTRY_MARK}";' if found[1] else found[0]


def _with_map_entries(compiled: bytes, main: str) -> bytes:
    """Restore the option in marked messages, and let protoc check the result."""
    files = FileDescriptorSet.FromString(compiled)
    for file in files.file:
        for message in _messages(file.message_type):
            if _MAP_ENTRY_MARK in message.reserved_name:
                message.reserved_name.remove(_MAP_ENTRY_MARK)
                message.options.map_entry = True
    return COMPILER.compile(main, {}, files.SerializeToString())


def _messages(messages: Any) -> Iterator[Any]:
    for message in messages:
        yield message
        yield from _messages(message.nested_type)
