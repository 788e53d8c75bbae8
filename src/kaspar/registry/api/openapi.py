"""The OpenAPI description of the registry, derived from its endpoints."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kaspar.registry.api.bodies import ErrorResponse
from kaspar.registry.api.endpoint import Endpoint, NoContent, Raw
from kaspar.registry.api.media_types import V1_JSON
from kaspar.web.openapi import Operation, ResponseSpec, openapi_json

ERRORS: Final = {
    40401: "The subject does not exist",
    40402: "The version does not exist",
    40403: "The schema does not exist",
    40404: "The subject is already soft-deleted; delete it with permanent=true",
    40405: "The subject must be soft-deleted before it can be deleted permanently",
    40406: "The version is already soft-deleted; delete it with permanent=true",
    40407: "The version must be soft-deleted before it can be deleted permanently",
    40408: "The subject has no config",
    40409: "The subject has no mode",
    409: "The schema is incompatible with an earlier version",
    42201: "The schema is not valid, or its type is unknown",
    42202: "The version is neither a positive number nor `latest`",
    42203: "The compatibility level does not exist",
    42204: "The mode does not exist",
    42205: "The mode does not allow it",
    42206: "Other schemas refer to it",
    42208: "The subject name is not valid",
    42209: "The schema is too large for the topic",
    42210: "The rules are not valid",
    42211: "The context is not empty",
    50001: "The records could not be written",
    50002: "The records were not read back in time",
    50003: "The leader could not be reached",
    50004: "There is no leader",
}
_WRITE_ERRORS: Final = (50001, 50002, 50003, 50004)
_PATH_NUMBERS: Final = frozenset({"id"})


@cache
def registry_openapi(endpoints: tuple[Endpoint, ...]) -> bytes:
    return openapi_json("Kaspar schema registry", map(_operation, endpoints), content_type=V1_JSON)


def _operation(endpoint: Endpoint) -> Operation:
    return Operation(
        endpoint.method,
        endpoint.path,
        endpoint.summary,
        endpoint.tag,
        {**_success(endpoint), **_errors(endpoint)},
        endpoint.parameters,
        _PATH_NUMBERS,
        endpoint.body,
    )


def _success(endpoint: Endpoint) -> Mapping[str, ResponseSpec]:
    if endpoint.response is NoContent:
        return {"204": ResponseSpec("Done")}
    body: Any = str if endpoint.response is Raw else endpoint.response
    return {"200": ResponseSpec(endpoint.summary, body)}


def _errors(endpoint: Endpoint) -> Mapping[str, ResponseSpec]:
    by_status: dict[str, list[str]] = {}
    for code in (*endpoint.errors, *(_WRITE_ERRORS if endpoint.writes is not None else ())):
        by_status.setdefault(str(code)[:3], []).append(f"{code}: {ERRORS[code]}.")
    return {status: ResponseSpec(" ".join(texts), ErrorResponse) for status, texts in by_status.items()}
