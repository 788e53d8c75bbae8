"""Whether data written with one Protobuf schema can be read with another, by Confluent's rules (protobuf.diff of its
registry): messages of the two files are matched by name, fields by number, and imports are followed.

A message of an import is compared once, however many fields are of its type. The types that fields lead to form a graph
that may be deep and have cycles, so it is walked with a queue, and never by recursion.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from kaspar.schemas.protobuf.differences import Change, Difference
from kaspar.schemas.protobuf.message_types import Field, Kind, Label, Message, ScalarKind, Types
from kaspar.schemas.protobuf.schema import ProtobufSchema

Path: TypeAlias = tuple[str, ...]
_Pair: TypeAlias = tuple[str, str]
_K = TypeVar("_K")


@dataclass(frozen=True, slots=True)
class _TypeOfField:
    """A field whose type is an imported message: it has changed if that message has."""

    path: Path
    types: _Pair


@dataclass(slots=True)
class _Findings:
    """The findings of one comparison: of the two files, or of two imported messages."""

    entries: list[Difference | _TypeOfField] = field(default_factory=list)

    def add(self, change: Change, path: Path) -> None:
        self.entries.append(Difference(change, path))

    def follow(self, path: Path, types: _Pair) -> None:
        self.entries.append(_TypeOfField(path, types))

    @property
    def followed(self) -> Iterator[_Pair]:
        return (entry.types for entry in self.entries if isinstance(entry, _TypeOfField))

    @property
    def has_incompatible(self) -> bool:
        return any(isinstance(entry, Difference) and not entry.change.is_compatible for entry in self.entries)


def incompatibilities(reader: ProtobufSchema, writer: ProtobufSchema) -> list[str]:
    """Confluent's messages; none if the reader can read all data of the writer."""
    return [str(difference) for difference in differences(reader, writer) if not difference.change.is_compatible]


def differences(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Difference]:
    """All changes from the writer's schema to the reader's, including compatible ones."""
    old, new = Types(writer.files()), Types(reader.files())
    own = _Comparison(old, new).of_files()
    imported = _compare_imported(old, new, own)
    incompatible = _incompatible(imported)
    return list(_in_order(own, imported, incompatible))


def _compare_imported(old: Types, new: Types, own: _Findings) -> dict[_Pair, _Findings]:
    compared: dict[_Pair, _Findings] = {}
    waiting = deque(own.followed)
    while waiting:
        pair = waiting.popleft()
        if pair not in compared:
            compared[pair] = _Comparison(old, new).of_messages(*pair)
            waiting.extend(compared[pair].followed)
    return compared


def _incompatible(imported: Mapping[_Pair, _Findings]) -> set[_Pair]:
    """The pairs of imported messages that are incompatible themselves, or because of a message that they refer to."""
    users: dict[_Pair, list[_Pair]] = {}
    for pair, findings in imported.items():
        for used in findings.followed:
            users.setdefault(used, []).append(pair)
    found: set[_Pair] = set()
    waiting = [pair for pair, findings in imported.items() if findings.has_incompatible]
    while waiting:
        pair = waiting.pop()
        if pair not in found:
            found.add(pair)
            waiting.extend(users.get(pair, ()))
    return found


def _in_order(own: _Findings, imported: Mapping[_Pair, _Findings], incompatible: set[_Pair]) -> Iterator[Difference]:
    """Differences of an imported message come once, before that of the first field of its type."""
    reported: set[_Pair] = set()
    waiting = list(reversed(own.entries))
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, Difference):
            yield entry
            continue
        if entry.types in incompatible:
            waiting.append(Difference(Change.FIELD_NAMED_TYPE_CHANGED, entry.path))
        if entry.types not in reported:
            reported.add(entry.types)
            waiting.extend(reversed(imported[entry.types].entries))


class _Comparison:
    """Walks two files, or two imported messages, side by side."""

    def __init__(self, old: Types, new: Types) -> None:
        self._old = old
        self._new = new
        self._findings = _Findings()

    def of_files(self) -> _Findings:
        if self._old.package != self._new.package:
            self._add(Change.PACKAGE_CHANGED, ())
        self._compare_messages(self._old.messages, self._new.messages, ())
        self._compare_enums(self._old.enums, self._new.enums, ())
        return self._findings

    def of_messages(self, old_name: str, new_name: str) -> _Findings:
        old, new = self._old.message(old_name), self._new.message(new_name)
        self._compare_message(old, new, tuple(old.local_name.split(".")))
        return self._findings

    def _add(self, change: Change, path: Path) -> None:
        self._findings.add(change, path)

    def _compare_messages(self, old: Mapping[str, Message], new: Mapping[str, Message], path: Path) -> None:
        old_index, new_index = _positions(old), _positions(new)
        for name in _all_keys(old, new):
            inside = (*path, name)
            if name not in new:
                self._add(Change.MESSAGE_REMOVED, inside)
            elif name not in old:
                self._add(Change.MESSAGE_ADDED, inside)
            else:
                self._compare_message(old[name], new[name], inside)
                if old_index[name] != new_index[name]:
                    self._add(Change.MESSAGE_MOVED, inside)

    def _compare_enums(self, old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
        for name in _all_keys(old, new):
            inside = (*path, name)
            if name not in new:
                self._add(Change.ENUM_REMOVED, inside)
            elif name not in old:
                self._add(Change.ENUM_ADDED, inside)
            else:
                self._compare_enum(old[name], new[name], inside)

    def _compare_enum(self, old: Any, new: Any, path: Path) -> None:
        old_values = {value.number: value.name for value in old.value}
        new_values = {value.number: value.name for value in new.value}
        for number in _all_keys(old_values, new_values):
            inside = (*path, str(number))
            if number not in new_values:
                self._add(Change.ENUM_CONST_REMOVED, inside)
            elif number not in old_values:
                self._add(Change.ENUM_CONST_ADDED, inside)
            elif old_values[number] != new_values[number]:
                self._add(Change.ENUM_CONST_CHANGED, inside)

    def _compare_message(self, old: Message, new: Message, path: Path) -> None:
        self._compare_oneofs(old, new, path)
        self._compare_fields(old, new, path)
        self._compare_moved_fields(old, new, path)
        self._compare_messages(old.messages, new.messages, path)
        self._compare_enums(old.enums, new.enums, path)

    def _compare_oneofs(self, old: Message, new: Message, path: Path) -> None:
        old_oneofs = _oneof_of_number(old.oneofs)
        for name, members in new.oneofs.items():
            moved = [number for number in members if number in old.fields]
            origins = {*moved, *(old_oneofs[number] for number in members if number in old_oneofs)}
            # At most one field of a oneof can be set, but a writer to which they were independent may have set several.
            if len(origins) > 1:
                several = len(moved) > 1
                change = Change.MULTIPLE_FIELDS_MOVED_TO_ONEOF if several else Change.FIELD_MOVED_TO_EXISTING_ONEOF
                self._add(change, (*path, name))
        remaining = new.fields.keys() | _by_number(new.oneofs).keys()
        for name in _all_keys(old.oneofs, new.oneofs):
            inside = (*path, name)
            if name not in new.oneofs:
                self._add(Change.ONEOF_REMOVED, inside)
            elif name not in old.oneofs:
                self._add(Change.ONEOF_ADDED, inside)
            else:
                self._compare_oneof(old.oneofs[name], new.oneofs[name], remaining, inside)

    def _compare_oneof(
        self, old: Mapping[int, Field], new: Mapping[int, Field], remaining: set[int], path: Path
    ) -> None:
        for number in sorted(_all_keys(old, new)):
            inside = (*path, str(number))
            if number not in new:
                # A field that has only left the oneof is compared in its new place.
                if number not in remaining:
                    self._add(Change.ONEOF_FIELD_REMOVED, inside)
            elif number not in old:
                self._add(Change.ONEOF_FIELD_ADDED, inside)
            else:
                self._compare_field(old[number], new[number], inside)

    def _compare_fields(self, old: Message, new: Message, path: Path) -> None:
        """Compare the fields outside of oneofs. A field that moved into a oneof was not removed."""
        moved = _by_number(new.oneofs).keys()
        for number in sorted(_all_keys(old.fields, new.fields)):
            inside = (*path, str(number))
            if number not in new.fields:
                if number not in moved:
                    required = old.fields[number].label is Label.REQUIRED
                    self._add(Change.REQUIRED_FIELD_REMOVED if required else Change.FIELD_REMOVED, inside)
            elif number not in old.fields:
                required = new.fields[number].label is Label.REQUIRED
                self._add(Change.REQUIRED_FIELD_ADDED if required else Change.FIELD_ADDED, inside)
            else:
                self._compare_field(old.fields[number], new.fields[number], inside)

    def _compare_moved_fields(self, old: Message, new: Message, path: Path) -> None:
        """Compare the fields that moved into, out of or between oneofs."""
        old_oneofs, new_oneofs = _oneof_of_number(old.oneofs), _oneof_of_number(new.oneofs)
        old_fields = {**old.fields, **_by_number(old.oneofs)}
        new_fields = {**new.fields, **_by_number(new.oneofs)}
        for number in sorted(old_fields.keys() & new_fields.keys()):
            if old_oneofs.get(number) != new_oneofs.get(number):
                self._compare_field(old_fields[number], new_fields[number], (*path, str(number)))

    def _compare_field(self, old: Field, new: Field, path: Path) -> None:
        if old.name != new.name:
            self._add(Change.FIELD_NAME_CHANGED, path)
        self._compare_type(old, new, path)

    def _compare_type(self, old: Field, new: Field, path: Path) -> None:
        if old.kind is not new.kind:
            self._add(Change.FIELD_KIND_CHANGED, path)
        elif old.kind is Kind.SCALAR:
            self._compare_scalar(old, new, path)
        elif old.kind is Kind.MAP:
            for old_part, new_part in zip(old.map_parts(), new.map_parts(), strict=True):
                self._compare_type(old_part, new_part, path)
        else:
            self._compare_named_type(self._old.message(old.type_name), self._new.message(new.type_name), path)

    def _compare_scalar(self, old: Field, new: Field, path: Path) -> None:
        if old.scalar_kind is not new.scalar_kind:
            self._add(Change.FIELD_SCALAR_KIND_CHANGED, path)
        elif old.label is not None and new.label is not None and old.label is not new.label:
            is_text = old.scalar_kind is ScalarKind.STRING_OR_BYTES
            # Repeated numbers are packed into one field, which a reader of a single number does not expect.
            change = Change.FIELD_STRING_OR_BYTES_LABEL_CHANGED if is_text else Change.FIELD_NUMERIC_LABEL_CHANGED
            self._add(change, path)

    def _compare_named_type(self, old: Message, new: Message, path: Path) -> None:
        if old.local_name != new.local_name:
            self._add(Change.FIELD_NAMED_TYPE_CHANGED, path)
        elif not (old.is_own and new.is_own):
            # Messages of the two files themselves are compared where they are defined.
            self._findings.follow(path, (old.full_name, new.full_name))


def _all_keys(old: Mapping[_K, Any], new: Mapping[_K, Any]) -> list[_K]:
    return list({**old, **new})


def _positions(messages: Mapping[str, Message]) -> dict[str, int]:
    return {name: index for index, name in enumerate(messages)}


def _by_number(oneofs: Mapping[str, Mapping[int, Field]]) -> dict[int, Field]:
    return {number: member for members in oneofs.values() for number, member in members.items()}


def _oneof_of_number(oneofs: Mapping[str, Mapping[int, Field]]) -> dict[int, str]:
    return {number: name for name, members in oneofs.items() for number in members}
