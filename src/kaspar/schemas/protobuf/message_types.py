"""The types that a schema can use, its own and imported ones, and the properties of fields that are compared: wire
kinds, labels and types, whatever the syntax they were written in."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FeatureSet, FieldDescriptorProto

from kaspar.schemas.protobuf.members import Members


class Kind(Enum):
    SCALAR = auto()
    MAP = auto()
    MESSAGE = auto()
    # On the wire a group is not a message, so neither can be read as the other.
    GROUP = auto()


class ScalarKind(Enum):
    """Scalars of one kind are wire-compatible; see "Updating A Message Type" in protobuf's language guide."""

    GENERAL_NUMBER = auto()
    SIGNED_NUMBER = auto()
    STRING_OR_BYTES = auto()
    FIXED32 = auto()
    FIXED64 = auto()
    FLOAT = auto()
    DOUBLE = auto()


_SCALAR_KINDS: Final = {
    FieldDescriptorProto.TYPE_INT32: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_INT64: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_UINT32: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_UINT64: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_BOOL: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_ENUM: ScalarKind.GENERAL_NUMBER,
    FieldDescriptorProto.TYPE_SINT32: ScalarKind.SIGNED_NUMBER,
    FieldDescriptorProto.TYPE_SINT64: ScalarKind.SIGNED_NUMBER,
    FieldDescriptorProto.TYPE_STRING: ScalarKind.STRING_OR_BYTES,
    FieldDescriptorProto.TYPE_BYTES: ScalarKind.STRING_OR_BYTES,
    FieldDescriptorProto.TYPE_FIXED32: ScalarKind.FIXED32,
    FieldDescriptorProto.TYPE_SFIXED32: ScalarKind.FIXED32,
    FieldDescriptorProto.TYPE_FIXED64: ScalarKind.FIXED64,
    FieldDescriptorProto.TYPE_SFIXED64: ScalarKind.FIXED64,
    FieldDescriptorProto.TYPE_FLOAT: ScalarKind.FLOAT,
    FieldDescriptorProto.TYPE_DOUBLE: ScalarKind.DOUBLE,
}


class Label(Enum):
    """The label as written. A field of proto3 without a label, and one in a oneof, have none."""

    OPTIONAL = auto()
    REQUIRED = auto()
    REPEATED = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message; the key and the value of a map are fields too, without a label."""

    descriptor: Any
    label: Label | None
    map_entry: Any | None
    delimited: bool

    @property
    def name(self) -> str:
        return str(self.descriptor.name)

    @property
    def number(self) -> int:
        return int(self.descriptor.number)

    @property
    def type_name(self) -> str:
        return str(self.descriptor.type_name).removeprefix(".")

    @property
    def kind(self) -> Kind:
        if self.map_entry is not None:
            return Kind.MAP
        if self.descriptor.type in _SCALAR_KINDS:
            return Kind.SCALAR
        return Kind.GROUP if self.delimited else Kind.MESSAGE

    @property
    def scalar_kind(self) -> ScalarKind:
        return _SCALAR_KINDS[self.descriptor.type]

    def map_parts(self) -> tuple["Field", "Field"]:
        assert self.map_entry is not None
        key, value = (Field(part, None, None, delimited=False) for part in self.map_entry.field)
        return key, value


@dataclass(frozen=True)
class Message:
    """A message for a comparison, without the nested messages that only stand for maps."""

    descriptor: Any
    full_name: str
    package: str
    # Whether it is defined by the schema itself, not by an import.
    is_own: bool
    syntax: str
    features: Any

    @property
    def local_name(self) -> str:
        """The name without the package, which may change."""
        return self.full_name.removeprefix(f"{self.package}.") if self.package else self.full_name

    @cached_property
    def fields(self) -> Mapping[int, Field]:
        """The fields outside of oneofs, by number."""
        return {each.number: self._field(each, self._label(each)) for each in self._members.fields}

    @cached_property
    def oneofs(self) -> Mapping[str, Mapping[int, Field]]:
        return {
            oneof.declaration.name: {each.number: self._field(each, None) for each in oneof.fields}
            for oneof in self._members.oneofs
        }

    @property
    def messages(self) -> Mapping[str, "Message"]:
        return {
            each.name: Message(
                each,
                f"{self.full_name}.{each.name}",
                self.package,
                self.is_own,
                self.syntax,
                _inherited(self.features, each),
            )
            for each in self.descriptor.nested_type
            if not each.options.map_entry
        }

    @property
    def enums(self) -> Mapping[str, Any]:
        return {each.name: each for each in self.descriptor.enum_type}

    @cached_property
    def _members(self) -> Members:
        return Members.of(self.descriptor, self.full_name)

    def _field(self, descriptor: Any, label: Label | None) -> Field:
        entry = self._members.map_entries.get(descriptor.type_name)
        is_group = descriptor.type == FieldDescriptorProto.TYPE_GROUP
        features = _inherited(self.features, descriptor)
        delimited = is_group or features.message_encoding == FeatureSet.DELIMITED
        return Field(descriptor, None if entry is not None else label, entry, delimited)

    def _label(self, descriptor: Any) -> Label | None:
        match descriptor.label:
            case FieldDescriptorProto.LABEL_REPEATED:
                return Label.REPEATED
            case FieldDescriptorProto.LABEL_REQUIRED:
                return Label.REQUIRED
        if self.syntax == "editions":
            presence = _inherited(self.features, descriptor).field_presence
            return Label.REQUIRED if presence == FeatureSet.LEGACY_REQUIRED else None
        return Label.OPTIONAL if self.syntax != "proto3" or descriptor.proto3_optional else None


class Types:
    """All messages of a schema's files, and the top-level types of its own file."""

    def __init__(self, files: Sequence[Any]) -> None:
        self._files = files
        self.package = str(files[-1].package)
        self._by_name: dict[str, Message] = {}
        for file in files:
            for message in self._top_level(file).values():
                self._by_name.update((each.full_name, each) for each in _with_nested(message))

    @property
    def messages(self) -> Mapping[str, Message]:
        return self._top_level(self._files[-1])

    @property
    def enums(self) -> Mapping[str, Any]:
        return {each.name: each for each in self._files[-1].enum_type}

    def message(self, full_name: str) -> Message:
        return self._by_name[full_name]

    def _top_level(self, file: Any) -> Mapping[str, Message]:
        prefix = f"{file.package}." if file.package else ""
        is_own = file is self._files[-1]
        features = file.options.features
        return {
            each.name: Message(each, prefix + each.name, file.package, is_own, file.syntax, _inherited(features, each))
            for each in file.message_type
        }


def _with_nested(message: Message) -> Iterator[Message]:
    yield message
    for nested in message.messages.values():
        yield from _with_nested(nested)


def _inherited(features: Any, element: Any) -> Any:
    """The features of an edition that apply to an element: its own, merged into the inherited ones."""
    if not element.options.HasField("features"):
        return features
    merged = type(features)()
    merged.CopyFrom(features)
    merged.MergeFrom(element.options.features)
    return merged
