"""Generated .proto texts: messages before and after some changes, and files whose names hide each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

NUMBERS = ["int32", "int64", "uint32", "uint64", "bool", "E", "sint32", "sint64"]
FIXED = ["fixed32", "sfixed32", "fixed64", "sfixed64", "float", "double"]
TEXTS = ["string", "bytes"]
SCALARS = NUMBERS + FIXED + TEXTS
MESSAGES = ["Leaf", "Other"]
MAPS = ["map<string, int32>", "map<string, string>", "map<int32, Leaf>", "map<int64, Other>"]

TYPES = (
    "enum E { Z = 0; ONE = 1; } message Leaf { {o} int32 x = 1; {o} string y = 2; } message Other { {o} int32 x = 1; }"
)


@dataclass(frozen=True, slots=True)
class Field:
    number: int
    name: str
    type: str
    label: str = ""
    oneof: str | None = None

    def __str__(self) -> str:
        label = "" if self.oneof is not None or self.type in MAPS else self.label
        return f"{label} {self.type} {self.name} = {self.number};"


@dataclass(frozen=True, slots=True)
class Schema:
    syntax: str
    fields: tuple[Field, ...]

    @property
    def text(self) -> str:
        types = TYPES.replace("{o}", "optional" if self.syntax == "proto2" else "")
        plain = "".join(str(field) for field in self.fields if field.oneof is None)
        oneofs = {field.oneof for field in self.fields if field.oneof is not None}
        grouped = "".join(
            f"oneof {name} {{ {''.join(str(field) for field in self.fields if field.oneof == name)} }}"
            for name in sorted(oneofs)
        )
        return f'syntax = "{self.syntax}"; {types} message T {{ {plain} {grouped} }}'


def _fields(syntax: str) -> st.SearchStrategy[tuple[Field, ...]]:
    def named(number: int) -> st.SearchStrategy[Field]:
        plain = st.builds(
            Field,
            st.just(number),
            st.just(f"f{number}"),
            st.sampled_from(SCALARS + MESSAGES + MAPS),
            st.sampled_from(_labels(syntax)),
        )
        in_oneof = st.builds(
            Field,
            st.just(number),
            st.just(f"f{number}"),
            st.sampled_from(SCALARS + MESSAGES),
            st.just(_labels(syntax)[0]),
            st.sampled_from(["o", "p"]),
        )
        return plain | plain | in_oneof

    numbers = st.lists(st.integers(1, 8), unique=True, max_size=6)
    return numbers.flatmap(lambda numbers: st.tuples(*map(named, numbers)))


def _labels(syntax: str) -> list[str]:
    return ["optional", "required", "repeated"] if syntax == "proto2" else ["", "optional", "repeated"]


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """The same message before and after some changes. In proto3, a number without a label does not become repeated, nor
    the other way round: Confluent's rules accept that, though a packed number is not read as a single one."""
    syntax = draw(st.sampled_from(["proto2", "proto3"]))
    old = draw(_fields(syntax))
    new = [changed for field in old if (changed := draw(_change(field, syntax))) is not None]
    taken = {field.number for field in old}
    added = [replace(field, name=f"g{field.number}") for field in draw(_fields(syntax)) if field.number not in taken]
    return Schema(syntax, old), Schema(syntax, tuple(new + added))


def _change(field: Field, syntax: str) -> st.SearchStrategy[Field | None]:
    single = field.label != "repeated" and field.type not in MAPS
    changes: list[st.SearchStrategy[Field | None]] = [
        st.just(field),
        st.none(),
        st.just(replace(field, name=f"renamed{field.number}")),
    ]
    if field.oneof is None and field.type not in MAPS:
        changes.append(st.sampled_from(SCALARS + MESSAGES).map(lambda kind: replace(field, type=kind)))
        labels = _labels(syntax)
        if syntax == "proto3" and field.type in NUMBERS + FIXED:
            labels = ["", "optional"] if field.label == "" else ["optional", "repeated"]
            labels = ["repeated"] if field.label == "repeated" else labels
        changes.append(st.sampled_from(labels).map(lambda label: replace(field, label=label)))
    if single:
        places = st.sampled_from([None, "o", "p", "q"])
        changes.append(places.map(lambda place: replace(field, oneof=place)))
        kinds = st.sampled_from(SCALARS + MESSAGES)
        changes.append(st.builds(lambda place, kind: replace(field, oneof=place, type=kind), places, kinds))
    return st.one_of(changes)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Files with nested messages whose names, and those of fields and of the package, are often the same."""
    package = draw(st.sampled_from(["", "A", "B.A", "C.B.A"]))
    tree = draw(_messages(depth=3))
    paths = [f".{f'{package}.' if package else ''}{path}" for path in _paths(tree)]
    body = "".join(_printed(draw, message, paths) for message in tree)
    return f'syntax = "proto3"; {f"package {package};" if package else ""} {body}'


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    nested: tuple["Node", ...]


def _messages(depth: int) -> st.SearchStrategy[list[Node]]:
    inner = _messages(depth - 1).map(tuple) if depth > 1 else st.just(())
    nodes = st.builds(Node, st.sampled_from("ABCD"), inner)
    return st.lists(nodes, min_size=0 if depth < 3 else 1, max_size=3, unique_by=lambda node: node.name)


def _paths(nodes: Sequence[Node], prefix: str = "") -> list[str]:
    return [path for node in nodes for path in (f"{prefix}{node.name}", *_paths(node.nested, f"{prefix}{node.name}."))]


def _printed(draw: st.DrawFn, node: Node, paths: list[str]) -> str:
    free = [name for name in "ABCDxyz" if name not in {nested.name for nested in node.nested}]
    names = draw(st.lists(st.sampled_from(free), unique=True, max_size=4))
    parts = [_printed(draw, nested, paths) for nested in node.nested]
    for number, name in enumerate(names, 1):
        kind = draw(st.sampled_from(paths))
        form = draw(st.sampled_from(["{kind}", "repeated {kind}", "map<string, {kind}>", "optional {kind}", "oneof"]))
        if form == "oneof":
            parts.append(f"oneof choice{number} {{ {kind} {name} = {number}; }}")
        else:
            parts.append(f"{form.format(kind=kind)} {name} = {number};")
    return f"message {node.name} {{ {' '.join(draw(st.permutations(parts)))} }}"
