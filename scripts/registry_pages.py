"""The page of the schema registry's API, made of the declarations of its endpoints."""

from collections.abc import Iterator

from kaspar.registry.api.endpoint import Endpoint, NoContent, Raw
from kaspar.registry.api.openapi import ERRORS
from kaspar.registry.api.routing import ALL_ENDPOINTS
from kaspar.web.openapi import Parameter

_INTRODUCTION = """# API of the schema registry

This page is written by `scripts/generate_reference.py` from the declarations in `src/kaspar/registry/api`. A running
registry has the same as an OpenAPI description at `/openapi.json`.

Paths, parameters, bodies and error codes are those of Confluent's registry 8.x. A subject of another context than the
default one is written `:.context:subject`; a path may also begin with the context, as in `/contexts/eu/subjects`. The
characters of a subject that mean something in a URL are percent-encoded, a slash as `%2F`. Bodies are JSON, with the
type `application/vnd.schemaregistry.v1+json`, `application/vnd.schemaregistry+json` or `application/json`.

An error has the body `{"error_code": 40401, "message": "Subject 'orders' not found."}`. The first three digits of the
code are the HTTP status. Besides the errors below, every write can fail with one of the codes 50001 to 50004.
Exporters, the DEK registry and tags inside of schemas are not offered.

Permissions count where there is a file of them. A list that needs `Read` on subjects leaves out the others.
"""


def registry_page() -> str:
    parts = [_INTRODUCTION, "## Errors\n", "| code | meaning |\n|---|---|"]
    parts += [f"| {code} | {meaning} |" for code, meaning in sorted(ERRORS.items())]
    for tag in dict.fromkeys(endpoint.tag for endpoint in ALL_ENDPOINTS):
        parts.append(f"\n## {tag}")
        for endpoint in ALL_ENDPOINTS:
            if endpoint.tag == tag:
                parts += ["", *_endpoint(endpoint)]
    return "\n".join(parts) + "\n"


def _endpoint(endpoint: Endpoint) -> Iterator[str]:
    yield f"### `{endpoint.method} {endpoint.path}`\n"
    yield f"{endpoint.summary}. Permission: {endpoint.access.value}."
    if endpoint.response is NoContent:
        yield "The response has no body (204)."
    elif endpoint.response is Raw:
        yield "The response is the text itself."
    if endpoint.parameters:
        yield "\n| parameter | default | |\n|---|---|---|"
        yield from map(_parameter, endpoint.parameters)
    if endpoint.body is not None:
        fields = (f"`{name}`" for name in endpoint.body.__struct_encode_fields__ if not name.startswith("schemaTags"))
        yield f"\nBody: {', '.join(fields)}."
    if endpoint.errors:
        yield f"\nErrors: {', '.join(map(str, endpoint.errors))}."


def _parameter(parameter: Parameter) -> str:
    default = "false" if parameter.kind.value == "boolean" else parameter.default
    return f"| `{parameter.name}` | {'' if default is None else f'`{default}`'} | {parameter.doc} |"
