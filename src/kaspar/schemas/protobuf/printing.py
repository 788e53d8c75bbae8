"""Descriptors as .proto text, in the layout of Confluent's registry (ProtobufSchemaUtils, after Square's Wire).

There are three styles: the canonical text that is stored and identifies a schema; `normalize`, which in addition sorts
unordered parts and writes full names; and without extensions. The text compiles to the descriptor that it was printed
from, except for the order of fields: a oneof comes after the other fields.

The order of nested messages is kept, because message indexes count them. A map field and a group define a nested
message where they are written, so nested messages that were defined before such a field are printed before it. (Only a
group in a oneof, or in an extension, moves behind other messages.)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeVar

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from kaspar.schemas.protobuf.members import Members, NestedMessages, Oneof, groups_of
from kaspar.schemas.protobuf.names import Names, option_imports
from kaspar.schemas.protobuf.options import Option, OptionPrinter, indented, quoted

MAX_FIELD_NUMBER: Final = (1 << 29) - 1
MAX_ENUM_NUMBER: Final = (1 << 31) - 1

_T = TypeVar("_T")

_EDITIONS: Final = "editions"
_PROTO3: Final = "proto3"
_LABELS: Final = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional",
    FieldDescriptorProto.LABEL_REQUIRED: "required",
    FieldDescriptorProto.LABEL_REPEATED: "repeated",
}


class Style(Enum):
    CANONICAL = auto()
    NORMALIZED = auto()
    WITHOUT_EXTENSIONS = auto()


def print_file(files: Sequence[Any], style: Style = Style.CANONICAL) -> str:
    """The text of the last of these files; the others are its imports. Custom options are printed if the files are
    messages of a pool that has their definitions."""
    return _Printer(files, style).file()


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of numbers that are reserved, or left to extensions; `end` is inclusive."""

    start: int
    end: int
    maximum: int

    def __str__(self) -> str:
        if self.start == self.end:
            return str(self.start)
        return f"{self.start} to {'max' if self.end >= self.maximum else self.end}"


class _Printer:
    def __init__(self, files: Sequence[Any], style: Style) -> None:
        self._file = files[-1]
        self._normalized = style is Style.NORMALIZED
        self._with_extensions = style is not Style.WITHOUT_EXTENSIONS
        self._names = None if self._normalized else Names.visible_in(files)
        self._options = OptionPrinter(self._names)

    def file(self) -> str:
        package = self._file.package
        head = self._syntax() + (f"package {package};\n" if package else "")
        groups = groups_of(self._file.extension, self._file.message_type, package)
        inline = {message.name for message in groups.values()}
        types = [self._message(each, package) for each in self._file.message_type if each.name not in inline]
        types += [self._enum(enum, package) for enum in self._file.enum_type]
        sections = (
            self._imports(),
            self._option_statements(self._file.options, package),
            types,
            self._extends(self._file.extension, package, groups),
            [self._service(service) for service in self._file.service],
        )
        return head + "".join(f"\n{''.join(section)}" for section in sections if section)

    def _syntax(self) -> str:
        if self._file.syntax == _EDITIONS:
            edition = self._file.DESCRIPTOR.fields_by_name["edition"].enum_type.values_by_number[self._file.edition]
            return f'edition = "{edition.name.removeprefix("EDITION_")}";\n'
        if self._file.syntax == _PROTO3:
            return 'syntax = "proto3";\n'
        # Confluent normalizes to proto2, which is the default and is not written.
        return "" if self._normalized else 'syntax = "proto2";\n'

    def _imports(self) -> list[str]:
        public, weak = set(self._file.public_dependency), set(self._file.weak_dependency)
        numbered = list(enumerate(self._file.dependency))
        plain = [f"import {quoted(name)};\n" for index, name in numbered if index not in public | weak]
        special = [
            f"import {'public' if index in public else 'weak'} {quoted(name)};\n"
            for index, name in numbered
            if index in public | weak
        ]
        of_options = [f"import option {quoted(name)};\n" for name in option_imports(self._file)]
        if self._normalized:
            plain, special, of_options = sorted(set(plain)), sorted(set(special)), sorted(set(of_options))
        return plain + special + of_options

    def _message(self, message: Any, scope: str) -> str:
        return f"{_visibility(message)}message {message.name} {self._message_body(message, scope)}\n"

    def _message_body(self, message: Any, scope: str) -> str:
        inside = _join(scope, message.name)
        members = Members.of(message, inside)
        nested = NestedMessages(message, inside, members, lambda child: self._message(child, inside))
        sections = [
            self._reserved(message.reserved_range, message.reserved_name, end_is_inclusive=False),
            self._option_statements(message.options, scope),
            self._fields(members.fields, inside, members, nested),
            [text for oneof in self._oneofs(members) for text in self._oneof(oneof, inside, members, nested)],
            self._extension_ranges(message, inside) if self._with_extensions else [],
            self._extends(message.extension, inside, members.groups),
            [*nested.rest(), *(self._enum(enum, inside) for enum in message.enum_type)],
        ]
        return _block(sections)

    def _fields(self, fields: Iterable[Any], scope: str, members: Members, nested: NestedMessages) -> list[str]:
        texts = []
        for field in self._sorted(fields, _number):
            # Normalized text has its nested messages at the end; message indexes do not refer to it.
            before = () if self._normalized else nested.before(field)
            texts += [*before, self._field(field, scope, members)]
        return texts

    def _oneofs(self, members: Members) -> list[Oneof]:
        return self._sorted(members.oneofs, lambda oneof: min(map(_number, oneof.fields)))

    def _oneof(self, oneof: Oneof, scope: str, members: Members, nested: NestedMessages) -> Iterator[str]:
        if not self._normalized:
            for field in oneof.fields:
                yield from nested.before(field)
        sections = [
            self._option_statements(oneof.declaration.options, scope),
            [self._field(field, scope, members, in_oneof=True) for field in self._sorted(oneof.fields, _number)],
        ]
        yield f"oneof {oneof.declaration.name} {_block(sections)}\n"

    def _field(self, field: Any, scope: str, members: Members, *, in_oneof: bool = False) -> str:
        label = "" if in_oneof else self._label(field)
        options = self._field_options(field, scope)
        if (group := members.groups.get(field.type_name)) is not None:
            body = self._message_body(group, scope)
            return f"{label}group {group.name} = {field.number}{options} {body}\n"
        declared = label + self._type(field, scope)
        if (entry := members.map_entries.get(field.type_name)) is not None:
            key, value = (self._type(part, _join(scope, entry.name)) for part in entry.field)
            declared = f"map<{key}, {value}>"
        return f"{declared} {field.name} = {field.number}{options};\n"

    def _label(self, field: Any) -> str:
        optional = field.label == FieldDescriptorProto.LABEL_OPTIONAL
        if optional and self._file.syntax in (_PROTO3, _EDITIONS) and not field.proto3_optional:
            return ""
        return f"{_LABELS[field.label]} "

    def _type(self, field: Any, scope: str) -> str:
        if not field.type_name:
            return str(FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower())
        return self._type_name(field.type_name, scope)

    def _type_name(self, full_name: str, scope: str) -> str:
        return full_name if self._names is None else self._names.shortest(full_name.removeprefix("."), scope)

    def _field_options(self, field: Any, scope: str) -> str:
        options = self._kept(self._options.options(field.options, scope))
        if field.HasField("default_value"):
            options.append(Option("default", _default(field)))
        if field.HasField("json_name") and not field.extendee and field.json_name != json_name(field.name):
            options.append(Option("json_name", quoted(field.json_name)))
        return _option_list(self._sorted(options, lambda option: option.sort_key))

    def _option_statements(self, options: Any, scope: str) -> list[str]:
        kept = self._sorted(self._kept(self._options.options(options, scope)), lambda option: option.sort_key)
        return [f"option {option};\n" for option in kept]

    def _kept(self, options: Iterable[Option]) -> list[Option]:
        return [option for option in options if self._with_extensions or not option.is_extension]

    def _reserved(self, ranges: Iterable[Any], names: Iterable[str], *, end_is_inclusive: bool) -> list[str]:
        maximum = MAX_ENUM_NUMBER if end_is_inclusive else MAX_FIELD_NUMBER
        numbers = [_Range(each.start, each.end - (not end_is_inclusive), maximum) for each in ranges]
        quote = str if self._file.syntax == _EDITIONS else quoted
        written = [str(each) for each in self._sorted(numbers, lambda each: (each.start, str(each)))]
        written_names = [quote(name) for name in self._sorted(names, str)]
        if self._normalized:
            return [f"reserved {each};\n" for each in (*written, *written_names)]
        return [f"reserved {', '.join(each)};\n" for each in (written, written_names) if each]

    def _extension_ranges(self, message: Any, scope: str) -> list[str]:
        """Ranges with equal options share a statement, since protoc copies a statement's options to each range."""
        statements: list[tuple[str, list[str]]] = []
        for each in self._sorted(message.extension_range, lambda each: each.start):
            options = _option_list(self._options.options(each.options, scope))
            text = str(_Range(each.start, each.end - 1, MAX_FIELD_NUMBER))
            if statements and statements[-1][0] == options and not self._normalized:
                statements[-1][1].append(text)
            else:
                statements.append((options, [text]))
        return [f"extensions {', '.join(ranges)}{options};\n" for options, ranges in statements]

    def _extends(self, extensions: Iterable[Any], scope: str, groups: Mapping[str, Any]) -> list[str]:
        if not self._with_extensions:
            return []
        by_extendee: dict[str, list[Any]] = {}
        for field in extensions:
            by_extendee.setdefault(field.extendee, []).append(field)
        members = Members([], [], {}, groups)
        return [
            f"extend {self._type_name(extendee, scope)} {_block([self._extension_fields(fields, scope, members)])}\n"
            for extendee, fields in by_extendee.items()
        ]

    def _extension_fields(self, fields: Iterable[Any], scope: str, members: Members) -> list[str]:
        return [self._field(field, scope, members) for field in self._sorted(fields, _number)]

    def _enum(self, enum: Any, scope: str) -> str:
        # The first value of an open enum is zero, even if there are negative ones.
        is_open = self._file.syntax == _PROTO3
        values = self._sorted(enum.value, lambda value: (is_open and value.number != 0, value.number, value.name))
        lines = [
            *self._reserved(enum.reserved_range, enum.reserved_name, end_is_inclusive=True),
            *self._option_statements(enum.options, scope),
            *(f"{value.name} = {value.number}{self._value_options(value, scope)};\n" for value in values),
        ]
        return f"{_visibility(enum)}enum {enum.name} {{\n{indented(''.join(lines))}}}\n"

    def _value_options(self, value: Any, scope: str) -> str:
        options = self._kept(self._options.options(value.options, scope))
        return _option_list(self._sorted(options, lambda option: option.sort_key))

    def _service(self, service: Any) -> str:
        package = self._file.package
        inside = _join(package, service.name)
        sections = [
            self._option_statements(service.options, package),
            [self._method(method, inside) for method in service.method],
        ]
        return f"service {service.name} {_block(sections)}\n"

    def _method(self, method: Any, scope: str) -> str:
        request = ("stream " if method.client_streaming else "") + self._type_name(method.input_type, scope)
        response = ("stream " if method.server_streaming else "") + self._type_name(method.output_type, scope)
        options = self._option_statements(method.options, scope)
        body = f" {{\n{indented(''.join(options))}}}" if options else ""
        return f"rpc {method.name} ({request}) returns ({response}){body};\n"

    def _sorted(self, items: Iterable[_T], key: Callable[[_T], Any]) -> list[_T]:
        """The items in the order of the descriptor, or sorted if the text is normalized."""
        return sorted(items, key=key) if self._normalized else list(items)


def json_name(name: str) -> str:
    """The JSON name that protoc derives from a field's name."""
    words = name.split("_")
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def _default(field: Any) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return quoted(field.default_value)
    # In a descriptor bytes are already escaped.
    return f'"{field.default_value}"' if field.type == FieldDescriptorProto.TYPE_BYTES else str(field.default_value)


def _option_list(options: Sequence[Option]) -> str:
    if not options:
        return ""
    if len(options) == 1:
        return f" [{options[0]}]"
    last = len(options) - 1
    lines = (indented(str(option) if index == last else f"{option},") for index, option in enumerate(options))
    return f" [\n{''.join(lines)}]"


def _block(sections: Iterable[Sequence[str]]) -> str:
    """Statements in braces, with an empty line between the sections."""
    body = "".join(f"\n{indented(''.join(section))}" for section in sections if section)
    return f"{{{body}}}"


def _visibility(element: Any) -> str:
    """Edition 2024 can export a type from its file, or keep it local."""
    # An older descriptor.proto does not have the field.
    visibility = getattr(element, "visibility", 0)
    if not visibility:
        return ""
    values = element.DESCRIPTOR.fields_by_name["visibility"].enum_type.values_by_number
    return f"{values[visibility].name.removeprefix('VISIBILITY_').lower()} "


def _number(field: Any) -> int:
    return int(field.number)


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
