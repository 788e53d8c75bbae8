"""A parsed Protobuf schema: its canonical text, its other forms, and its descriptors.

The canonical text is printed from the compiled descriptor, whatever form the schema was registered in. So a .proto
text, the text that Java's clients print, and the base64 of a descriptor have the same one, and get one id. Comments are
not part of it, nor are options that protobuf only keeps in the source (RETENTION_SOURCE).
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf.message import DecodeError

from kaspar.schemas.protobuf.descriptors import DESCRIPTOR_FILE, FileDescriptorSet, class_in, private_pool
from kaspar.schemas.protobuf.printing import Style, json_name, print_file
from kaspar.schemas.protobuf.sources import MAIN, compile_schema
from kaspar.schemas.schema import InvalidSchema, SchemaType


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """Immutable. `serialized_files` is a FileDescriptorSet: all imports of the schema, and its own file last."""

    serialized_files: bytes

    @property
    def type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    @cached_property
    def canonical(self) -> str:
        return print_file(self._files_with_custom_options())

    @cached_property
    def normalized(self) -> str:
        return print_file(self._files_with_custom_options(), Style.NORMALIZED)

    @cached_property
    def name(self) -> str | None:
        """The name of the first message, or of the first enum if there is none."""
        file = self.files()[-1]
        for element in (*file.message_type, *file.enum_type):
            return f"{file.package}.{element.name}" if file.package else str(element.name)
        return None

    def formatted(self, form: str) -> str:
        match form.strip().lower():
            case "serialized":
                return base64.b64encode(self._own_file()).decode()
            case "ignore_extensions":
                return print_file(self._files_with_custom_options(), Style.WITHOUT_EXTENSIONS)
            case _:
                return self.canonical

    def files(self) -> Sequence[Any]:
        """FileDescriptorProtos, the schema's own last. They are decoded on every call, since they take much more memory
        than their bytes."""
        return tuple(FileDescriptorSet.FromString(self.serialized_files).file)

    def _files_with_custom_options(self) -> Sequence[Any]:
        """The files as messages of a pool that has the extensions of options which the files define."""
        files = self.files()
        if all(file.name != DESCRIPTOR_FILE for file in files):
            return files
        pool = private_pool(file.SerializeToString() for file in files)
        return tuple(class_in(pool, "FileDescriptorSet").FromString(self.serialized_files).file)

    def _own_file(self) -> bytes:
        file = self.files()[-1]
        file.name = MAIN
        _clear_derived_json_names(file.message_type)
        for extension in file.extension:
            extension.ClearField("json_name")
        return bytes(file.SerializeToString(deterministic=True))


def parse(text: str, references: Mapping[str, str]) -> ProtobufSchema:
    """Parse .proto text or the base64 of a FileDescriptorProto. `references`, in either form, are by the names in
    imports. Blocks while protoc runs, for some milliseconds; nothing else here is slow. Raises InvalidSchema."""
    schema = ProtobufSchema(compile_schema(text, references))
    try:
        _ = schema.canonical
    except DecodeError:
        # A descriptor has custom options as bytes, which protoc does not check.
        raise InvalidSchema("A custom option of the schema is not of its type") from None
    return schema


def _clear_derived_json_names(messages: Iterable[Any]) -> None:
    """protoc writes the JSON name of every field; descriptors of generated code have only those that were specified."""
    for message in messages:
        for field in message.field:
            if field.json_name == json_name(field.name):
                field.ClearField("json_name")
        for extension in message.extension:
            extension.ClearField("json_name")
        _clear_derived_json_names(message.nested_type)
