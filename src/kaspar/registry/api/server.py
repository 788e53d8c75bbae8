"""/contexts, server metadata, and `/`."""

from typing import Any, Final

from kaspar import __version__
from kaspar.registry.api.bodies import ClusterIdResponse, ClusterScope, VersionResponse
from kaspar.registry.api.endpoint import LIMIT, OFFSET, Access, Call, Endpoint, NoContent, WriteTexts
from kaspar.registry.names import normalized
from kaspar.web.openapi import Parameter, ParameterKind

_CONTEXTS: Final = "Contexts"
_SERVER: Final = "Server"

API_VERSION: Final = "8.1.0"
"""The version of Confluent's registry with the same API; clients use it to detect features."""


async def _contexts(call: Call) -> list[str]:
    offset = max(0, call.number("offset", 0))
    length = call.service.options.context_search.page(call.number("limit", -1))
    prefix = call.text("contextPrefix")
    found = [context for context in call.service.state.contexts if context.startswith(prefix)]
    return found[offset : offset + length]


async def _delete_context(call: Call) -> NoContent:
    await call.service.delete_context(normalized(call.path["context"]))
    return NoContent()


async def _cluster_id(call: Call) -> ClusterIdResponse:
    options = call.service.options
    clusters = {"kafka-cluster": options.cluster_id, "schema-registry-cluster": options.group_id}
    return ClusterIdResponse("", ClusterScope([], clusters))


async def _server_version(call: Call) -> VersionResponse:
    return VersionResponse(API_VERSION, f"kaspar-{__version__}")


async def _root(call: Call) -> dict[str, Any]:
    return {}


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/contexts",
        _contexts,
        "The contexts",
        _CONTEXTS,
        Access.NOTHING,
        list[str],
        parameters=(
            Parameter("contextPrefix", ParameterKind.TEXT, "The prefix of the context's name, such as `.eu`"),
            OFFSET,
            LIMIT,
        ),
    ),
    Endpoint(
        "DELETE",
        "/contexts/{context}",
        _delete_context,
        "Delete an empty context",
        _CONTEXTS,
        Access.WRITE_CONFIG,
        NoContent,
        errors=(42211,),
        writes=WriteTexts(
            "Delete context operation timed out",
            "Error while deleting context",
            "Error while forwarding delete context request to the leader",
        ),
    ),
    Endpoint(
        "GET",
        "/v1/metadata/id",
        _cluster_id,
        "The ids of the Kafka cluster and of the registry's group",
        _SERVER,
        Access.NOTHING,
        ClusterIdResponse,
    ),
    Endpoint(
        "GET",
        "/v1/metadata/version",
        _server_version,
        "The version of the API",
        _SERVER,
        Access.NOTHING,
        VersionResponse,
    ),
    Endpoint("GET", "/", _root, "An empty object", _SERVER, Access.NOTHING, dict[str, str]),
    Endpoint("POST", "/", _root, "An empty object", _SERVER, Access.NOTHING, dict[str, str]),
)
