"""The common parts of the two texts of a schema, canonical and normalized.

A type is written as pieces: text, and inner types. Inner types are not written by recursion, because a chain of
records, each the type of the next one's field, may be long.
"""

from collections.abc import Callable, Iterator

from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Field, Fixed, Map, Primitive, Record, Union
from kaspar.schemas.jackson import quoted

Piece = str | tuple[AvroType, str | None]
"""Text, or a type to be written in its place, and the enclosing namespace."""


def write(root: AvroType, pieces: Callable[[AvroType, str | None], Iterator[Piece]]) -> str:
    """Write a type: all its pieces in order, with its inner types in their place."""
    written: list[str] = []
    pending: list[Iterator[Piece]] = [pieces(root, None)]
    while pending:
        match next(pending[-1], None):
            case None:
                pending.pop()
            case str(text):
                written.append(text)
            case (node, namespace):
                pending.append(pieces(node, namespace))
    return "".join(written)


def unnamed(node: Primitive | Array | Map | Union, namespace: str | None, properties: str) -> Iterator[Piece]:
    """The pieces of an unnamed type. `properties` are members of its object."""
    match node:
        case Primitive(name=name) if not properties:
            yield quoted(name)
        case Primitive(name=name):
            yield f'{{"type":{quoted(name)}{properties}}}'
        case Array():
            yield '{"type":"array","items":'
            yield node.items, namespace
            yield f"{properties}}}"
        case Map():
            yield '{"type":"map","values":'
            yield node.values, namespace
            yield f"{properties}}}"
        case Union():
            yield "["
            for index, branch in enumerate(node.branches):
                yield "," if index else ""
                yield branch, namespace
            yield "]"


def contents(
    node: Record | Enumeration | Fixed, namespace: str | None, attributes: Callable[[Field], str]
) -> Iterator[Piece]:
    """The members that define a named type: fields, symbols or size."""
    match node:
        case Record():
            yield ',"fields":['
            for index, field in enumerate(node.fields):
                yield f'{"," if index else ""}{{"name":{quoted(field.name)},"type":'
                yield field.type, namespace
                yield f"{attributes(field)}}}"
            yield "]"
        case Enumeration():
            yield f',"symbols":[{",".join(map(quoted, node.symbols))}]'
            yield f',"default":{quoted(node.default)}' if node.default is not None else ""
        case Fixed():
            yield f',"size":{node.size}'
