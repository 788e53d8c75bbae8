"""Tags within a schema: the attribute `confluent:tags` of records and fields.

A record is identified by its full name, a field by that of its record, a dot and its own name. Functions take and
return canonical text.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from kaspar.schemas.avro.json_text import Json, read_json, to_json
from kaspar.schemas.schema import Entity, EntityType, InvalidSchema

_TAGS: Final = "confluent:tags"
_Node = dict[str, Json]


def tags_of(text: str) -> dict[Entity, tuple[str, ...]]:
    """The tags of all records and fields that have any."""
    return {entity: tags for entity, node in _entities(read_json(text), "") if (tags := _tags(node))}


def with_tags(text: str, added: Mapping[Entity, Collection[str]], removed: Mapping[Entity, Collection[str]]) -> str:
    """The text with these tags added and removed. Raises InvalidSchema if there is no such record or field."""
    document = read_json(text)
    nodes = dict(_entities(document, ""))
    for entity in dict.fromkeys([*added, *removed]):
        node = nodes.get(Entity(entity.path.removeprefix("."), entity.type))
        if node is None:
            raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
        tags = dict.fromkeys([*_tags(node), *added.get(entity, ())])
        kept: list[Json] = [tag for tag in tags if tag not in removed.get(entity, ())]
        if kept:
            node[_TAGS] = kept
        else:
            node.pop(_TAGS, None)
    return to_json(document)


def _entities(node: Json, namespace: str) -> Iterator[tuple[Entity, _Node]]:
    if isinstance(node, list):
        for branch in node:
            yield from _entities(branch, namespace)
    if not isinstance(node, dict):
        return
    if node.get("type") in ("record", "error"):
        yield from _record(node, namespace)
    else:
        for attribute in ("type", "items", "values"):
            yield from _entities(node.get(attribute), namespace)


def _record(node: _Node, namespace: str) -> Iterator[tuple[Entity, _Node]]:
    name, own = str(node["name"]), node.get("namespace", namespace)
    full = name if "." in name or not own else f"{own}.{name}"
    yield Entity(full, EntityType.RECORD), node
    fields = node["fields"]
    assert isinstance(fields, list)
    for field in fields:
        assert isinstance(field, dict)
        yield Entity(f"{full}.{field['name']}", EntityType.FIELD), field
        yield from _entities(field["type"], full.rpartition(".")[0])


def _tags(node: _Node) -> tuple[str, ...]:
    tags = node.get(_TAGS)
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()
