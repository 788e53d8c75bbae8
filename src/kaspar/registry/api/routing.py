"""Finds the endpoint of a request."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from kaspar.registry.api import compatibility, config, mode, schemas, server, subjects
from kaspar.registry.api.endpoint import Endpoint
from kaspar.registry.errors import MethodNotAllowed, http_error

ALL_ENDPOINTS: Final = (
    *schemas.ENDPOINTS,
    *subjects.ENDPOINTS,
    *compatibility.ENDPOINTS,
    *config.ENDPOINTS,
    *mode.ENDPOINTS,
    *server.ENDPOINTS,
)


class _Node:
    """A node in the tree of paths."""

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.endpoints: dict[str, Endpoint] = {}

    def child(self, segment: str) -> "_Node":
        if not segment.startswith("{"):
            return self.literals.setdefault(segment, _Node())
        if self.variable is None:
            self.variable = _Node()
        return self.variable


class Router:
    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            node = self._root
            for segment in endpoint.segments:
                node = node.child(segment)
            node.endpoints[endpoint.method] = endpoint

    def find(self, method: str, segments: Sequence[str]) -> Endpoint:
        """HEAD is handled as GET. Raises RegistryError (404 or 405)."""
        node: _Node | None = self._root
        for segment in segments:
            if node is None or not segment:
                raise http_error(HTTPStatus.NOT_FOUND)
            node = node.literals.get(segment, node.variable)
        if node is None or not node.endpoints:
            raise http_error(HTTPStatus.NOT_FOUND)
        endpoint = node.endpoints.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            raise MethodNotAllowed(tuple(sorted({*node.endpoints, *(["HEAD"] if "GET" in node.endpoints else [])})))
        return endpoint


def path_parameters(endpoint: Endpoint, segments: Sequence[str]) -> Mapping[str, str]:
    return {name[1:-1]: value for name, value in zip(endpoint.segments, segments, strict=True) if name.startswith("{")}
