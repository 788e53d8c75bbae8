"""Names of types as they are written in a .proto text: resolved and shortened by protoc's scoping rules.

A descriptor has full names (`.shop.Order.Line`), a text usually only the necessary part (`Line` inside of Order). The
canonical text has the shortest name that means the type in that place, as people write it. So the text and the
descriptor of one schema are printed alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, Final

_SCALARS: Final = {"double", "float", "bool", "string", "bytes"} | {
    f"{kind}{bits}" for kind in ("int", "uint", "sint", "fixed", "sfixed") for bits in (32, 64)
}
_STATEMENTS: Final = {
    "enum",
    "export",
    "extend",
    "extensions",
    "local",
    "message",
    "oneof",
    "option",
    "reserved",
    "rpc",
}
_MODIFIERS: Final = {"group", "map", "optional", "repeated", "required", "returns", "stream"}
# A type whose name begins with one of these would be parsed as something else.
_KEYWORDS: Final = _SCALARS | _STATEMENTS | _MODIFIERS


class _Symbol(Flag):
    OTHER = 0
    TYPE = auto()
    # A symbol that contains others, so that its name can be followed by more parts.
    SCOPE = auto()


@dataclass(slots=True)
class Names:
    """All names that are visible in a file: its own, and those of its imports."""

    _symbols: dict[str, _Symbol] = field(default_factory=dict)

    @classmethod
    def visible_in(cls, files: Sequence[Any]) -> "Names":
        """`files` has the file last, after everything that it imports, directly or not."""
        names = cls()
        for file in _visible(files):
            names._add_file(file)
        return names

    def shortest(self, full_name: str, scope: str, *, of_type: bool = True) -> str:
        """The shortest name that means `full_name` (without a leading dot) inside of `scope`."""
        parts = full_name.split(".")
        for start in reversed(range(len(parts))):
            if parts[start] not in _KEYWORDS and self._resolve(parts[start:], scope, of_type=of_type) == full_name:
                return ".".join(parts[start:])
        return f".{full_name}"

    def _resolve(self, parts: Sequence[str], scope: str, *, of_type: bool) -> str | None:
        """protoc's lookup (DescriptorBuilder::LookupSymbol): the innermost scope that has the first part decides."""
        for prefix in _outwards(scope):
            symbol = self._symbols.get(prefix + parts[0])
            if symbol is None:
                continue
            if len(parts) == 1:
                if of_type and _Symbol.TYPE not in symbol:
                    continue
                return prefix + parts[0]
            if _Symbol.SCOPE in symbol:
                found = prefix + ".".join(parts)
                return found if found in self._symbols else None
        return None

    def _add_file(self, file: Any) -> None:
        package = file.package
        parts = package.split(".") if package else []
        for depth in range(1, len(parts) + 1):
            self._symbols.setdefault(".".join(parts[:depth]), _Symbol.SCOPE)
        prefix = f"{package}." if package else ""
        self._add_messages(file.message_type, prefix)
        self._add_enums(file.enum_type, prefix)
        self._add(file.extension, prefix)
        for service in file.service:
            self._symbols[prefix + service.name] = _Symbol.SCOPE
            self._add(service.method, f"{prefix}{service.name}.")

    def _add_messages(self, messages: Iterable[Any], prefix: str) -> None:
        for message in messages:
            self._symbols[prefix + message.name] = _Symbol.TYPE | _Symbol.SCOPE
            inside = f"{prefix}{message.name}."
            for named in (message.field, message.oneof_decl, message.extension):
                self._add(named, inside)
            self._add_enums(message.enum_type, inside)
            self._add_messages(message.nested_type, inside)

    def _add_enums(self, enums: Iterable[Any], prefix: str) -> None:
        for enum in enums:
            self._symbols[prefix + enum.name] = _Symbol.TYPE | _Symbol.SCOPE
            # A value's name belongs to the scope around its enum, as in C++; it is also visible inside of the enum.
            self._add(enum.value, prefix)
            self._add(enum.value, f"{prefix}{enum.name}.")

    def _add(self, named: Iterable[Any], prefix: str) -> None:
        for element in named:
            self._symbols.setdefault(prefix + element.name, _Symbol.OTHER)


def option_imports(file: Any) -> Sequence[str]:
    """The imports of edition 2024 that are only for options. An older descriptor.proto does not have the field."""
    return tuple(getattr(file, "option_dependency", ()))


def _visible(files: Sequence[Any]) -> Iterator[Any]:
    """The last file, its imports, and their public imports."""
    by_name = {file.name: file for file in files}
    main = files[-1]
    yield main
    seen = {main.name}
    waiting = [*main.dependency, *option_imports(main)]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in by_name:
            continue
        seen.add(name)
        yield by_name[name]
        waiting.extend(by_name[name].dependency[index] for index in by_name[name].public_dependency)


def _outwards(scope: str) -> Iterator[str]:
    """Prefixes of names, from the scope itself outwards."""
    while scope:
        yield f"{scope}."
        scope = scope.rpartition(".")[0]
    yield ""
