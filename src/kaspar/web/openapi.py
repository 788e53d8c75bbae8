"""OpenAPI descriptions, derived from a service's declarations of its operations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec

from kaspar import __version__

_COMPONENT: Final = "#/components/schemas/{name}"


class ParameterKind(Enum):
    """The JSON Schema type of a parameter."""

    TEXT = "string"
    FLAG = "boolean"
    NUMBER = "integer"
    TEXTS = "array"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter."""

    name: str
    kind: ParameterKind
    doc: str
    default: str | int | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """A response with one particular status."""

    doc: str
    body: Any = None
    """The type of the JSON body, or None if there is no body."""


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    """With path parameters in braces: `/topics/{topic}`."""
    summary: str
    tag: str
    responses: Mapping[str, ResponseSpec]
    """By status."""
    parameters: tuple[Parameter, ...] = ()
    numbers: frozenset[str] = field(default_factory=frozenset)
    """The path parameters that are integers; the others are strings."""
    body: Any = None


def openapi_json(title: str, operations: Iterable[Operation], *, content_type: str) -> bytes:
    described = _description(title, tuple(operations), content_type)
    return msgspec.json.format(msgspec.json.encode(described), indent=2)


def _description(title: str, operations: Sequence[Operation], content_type: str) -> dict[str, Any]:
    kinds = {str(kind): kind for each in operations for kind in _kinds(each)}
    schemas, components = msgspec.json.schema_components(kinds.values(), ref_template=_COMPONENT)
    content = {name: {content_type: {"schema": schema}} for name, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, content)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _kinds(operation: Operation) -> list[Any]:
    bodies = (operation.body, *(each.body for each in operation.responses.values()))
    return [kind for kind in bodies if kind is not None]


def _operation(operation: Operation, content: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _operation_id(operation),
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation), *map(_query_parameter, operation.parameters)],
        "responses": {status: _response(spec, content) for status, spec in operation.responses.items()},
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": content[str(operation.body)]}
    return described


def _response(spec: ResponseSpec, content: Mapping[str, Any]) -> dict[str, Any]:
    if spec.body is None:
        return {"description": spec.doc}
    return {"description": spec.doc, "content": content[str(spec.body)]}


def _operation_id(operation: Operation) -> str:
    """`getV3ClustersClusterIdTopicsAllConfigs`: a path segment `-` stands for all names."""
    segments = ["all" if segment == "-" else segment.strip("{}") for segment in re.split("[/:]", operation.path)]
    words = [word for segment in segments for word in re.split("[-_]", segment)]
    return operation.method.lower() + "".join(word[:1].upper() + word[1:] for word in words)


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [segment[1:-1] for segment in operation.path.split("/") if segment.startswith("{")]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer" if name in operation.numbers else "string"},
        }
        for name in names
    ]


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind.value}
    if parameter.kind is ParameterKind.TEXTS:
        schema["items"] = {"type": "string"}
    if parameter.kind is ParameterKind.FLAG:
        schema["default"] = False
    if parameter.default is not None:
        schema["default"] = parameter.default
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    described = {"name": parameter.name, "in": "query", "description": parameter.doc, "schema": schema}
    return described | {"required": True} if parameter.is_required else described
