"""The members of a message: which nested messages are only part of a map field or a group, which fields are in a oneof,
and in which order everything is written."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto


@dataclass(slots=True)
class Oneof:
    declaration: Any
    fields: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Members:
    """The members of one message. Messages are by their full name with a leading dot, as fields refer to them."""

    fields: list[Any]
    oneofs: list[Oneof]
    map_entries: Mapping[str, Any]
    groups: Mapping[str, Any]

    @classmethod
    def of(cls, message: Any, full_name: str) -> "Members":
        oneofs = [Oneof(declaration) for declaration in message.oneof_decl]
        fields = []
        for each in message.field:
            # The oneof of an `optional` field in proto3 only marks that the field has presence.
            if each.HasField("oneof_index") and not each.proto3_optional:
                oneofs[each.oneof_index].fields.append(each)
            else:
                fields.append(each)
        entries = {f".{full_name}.{nested.name}": nested for nested in message.nested_type if nested.options.map_entry}
        groups = groups_of((*message.field, *message.extension), message.nested_type, full_name)
        return cls(fields, [oneof for oneof in oneofs if oneof.fields], entries, groups)

    def is_written_inline(self, full_name: str) -> bool:
        """Whether a nested message is written as part of a field."""
        return full_name in self.map_entries or full_name in self.groups


def groups_of(fields: Iterable[Any], messages: Iterable[Any], scope: str) -> dict[str, Any]:
    """The messages that the groups among these fields define."""
    names = {each.type_name for each in fields if each.type == FieldDescriptorProto.TYPE_GROUP}
    prefix = f".{scope}." if scope else "."
    return {prefix + message.name: message for message in messages if prefix + message.name in names}


class NestedMessages:
    """Prints the nested messages of a message, each once. A map field and a group define a message where they are
    written. To keep the order, messages that were defined earlier are printed before it."""

    def __init__(self, message: Any, full_name: str, members: Members, print_message: Callable[[Any], str]) -> None:
        self._members = members
        self._names = [f".{full_name}.{nested.name}" for nested in message.nested_type]
        self._positions = {name: index for index, name in enumerate(self._names)}
        self._messages = message.nested_type
        self._print = print_message
        self._printed = 0

    def before(self, member: Any) -> Iterator[str]:
        """The messages that have to be printed before this field."""
        if self._members.is_written_inline(member.type_name):
            yield from self._up_to(self._positions[member.type_name])

    def rest(self) -> Iterator[str]:
        yield from self._up_to(len(self._names))

    def _up_to(self, end: int) -> Iterator[str]:
        start, self._printed = self._printed, max(self._printed, end)
        for index in range(start, end):
            if not self._members.is_written_inline(self._names[index]):
                yield self._print(self._messages[index])
