"""The OpenAPI description, made of the declarations of the endpoints."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import msgspec

from kaspar import __version__
from kaspar.registry.api.bodies import ErrorResponse
from kaspar.registry.api.endpoint import Endpoint, NoContent, Parameter, ParameterKind, Raw
from kaspar.registry.api.media_types import V1_JSON

ERRORS: Final = {
    40401: "The subject does not exist",
    40402: "The version does not exist",
    40403: "The schema does not exist",
    40404: "The subject is soft-deleted already; delete it with permanent=true",
    40405: "The subject has to be soft-deleted before it is deleted for good",
    40406: "The version is soft-deleted already; delete it with permanent=true",
    40407: "The version has to be soft-deleted before it is deleted for good",
    40408: "The subject has no config of its own",
    40409: "The subject has no mode of its own",
    409: "The schema is incompatible with an earlier version",
    42201: "The schema is not valid, or its format is not known",
    42202: "The version is neither a number from 1 nor `latest`",
    42203: "There is no such compatibility level",
    42204: "There is no such mode",
    42205: "The mode does not allow it",
    42206: "Other schemas refer to it",
    42208: "The name is no valid subject",
    42209: "The schema is too large for the topic",
    42210: "The rules are not valid",
    42211: "The context has subjects",
    50001: "The records could not be written",
    50002: "The records were not read back in time",
    50003: "The leader could not be reached",
    50004: "There is no leader",
}
_WRITE_ERRORS: Final = (50001, 50002, 50003, 50004)
_COMPONENT: Final = "#/components/schemas/{name}"


@cache
def openapi_json(endpoints: tuple[Endpoint, ...]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(description(endpoints)), indent=2)


def description(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    endpoints = tuple(endpoints)
    kinds: list[Any] = [each.response for each in endpoints if each.response not in (Raw, NoContent)]
    bodies = [each.body for each in endpoints if each.body is not None]
    schemas, components = msgspec.json.schema_components([*kinds, *bodies, ErrorResponse], ref_template=_COMPONENT)
    by_kind = dict(zip(map(str, [*kinds, *bodies, ErrorResponse]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kaspar schema registry", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(endpoint: Endpoint, by_kind: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _operation_id(endpoint),
        "tags": [endpoint.tag],
        "parameters": [*map(_path_parameter, _path_names(endpoint)), *map(_query_parameter, endpoint.parameters)],
        "responses": {**_success(endpoint, by_kind), **_errors(endpoint, by_kind)},
    }
    if endpoint.body is not None:
        content = {V1_JSON: {"schema": by_kind[str(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    words = [word for segment in endpoint.segments for word in segment.strip("{}").split("/")]
    return endpoint.method.lower() + "".join(word[:1].upper() + word[1:] for word in words)


def _path_names(endpoint: Endpoint) -> list[str]:
    return [segment[1:-1] for segment in endpoint.segments if segment.startswith("{")]


def _path_parameter(name: str) -> dict[str, Any]:
    kind = "integer" if name == "id" else "string"
    return {"name": name, "in": "path", "required": True, "schema": {"type": kind}}


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind.value}
    if parameter.kind is ParameterKind.TEXTS:
        schema["items"] = {"type": "string"}
    if parameter.kind is ParameterKind.FLAG:
        schema["default"] = False
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {"name": parameter.name, "in": "query", "description": parameter.doc, "schema": schema}


def _success(endpoint: Endpoint, by_kind: dict[str, Any]) -> dict[str, Any]:
    if endpoint.response is NoContent:
        return {"204": {"description": "Done"}}
    schema = {"type": "string"} if endpoint.response is Raw else by_kind[str(endpoint.response)]
    return {"200": {"description": endpoint.summary, "content": {V1_JSON: {"schema": schema}}}}


def _errors(endpoint: Endpoint, by_kind: dict[str, Any]) -> dict[str, Any]:
    by_status: dict[str, list[str]] = {}
    for code in (*endpoint.errors, *(_WRITE_ERRORS if endpoint.writes is not None else ())):
        by_status.setdefault(str(code)[:3], []).append(f"{code}: {ERRORS[code]}.")
    content = {V1_JSON: {"schema": by_kind[str(ErrorResponse)]}}
    return {status: {"description": " ".join(texts), "content": content} for status, texts in by_status.items()}
