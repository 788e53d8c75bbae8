"""Forwards writes from a follower to the leader. The client gets the leader's response, whatever its status."""

import ssl
from collections.abc import Collection
from typing import Final

import httpx

from kaspar.base.log import get_log
from kaspar.registry.interfaces import FORWARD_HEADER, ForwardedRequest, ForwardedResponse, ForwardingFailed

log = get_log(__name__)

_ALWAYS_FORWARDED: Final = ("content-type", "accept", "authorization", "x-request-id", "accept-language")
_RETURNED: Final = ("content-type", "www-authenticate", "retry-after", "x-request-id")
_MAX_CONNECTIONS: Final = 64
_POOL_TIMEOUT_S: Final = 10.0


class HttpForwarder:
    """Keeps its connections to the leader open. An unreachable leader is logged once, not for every request."""

    def __init__(
        self,
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
        also_forwarded: Collection[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._forwarded = frozenset((*_ALWAYS_FORWARDED, *(name.lower() for name in also_forwarded)))
        self._speaks_tls = tls is not None
        self._unreachable: str | None = None
        """The leader to which the last request could not be forwarded."""
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(
                read_timeout_s, connect=connect_timeout_s, write=read_timeout_s, pool=_POOL_TIMEOUT_S
            ),
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS),
            verify=False if tls is None else tls,
            trust_env=False,  # proxies from the environment are not for other instances
            follow_redirects=False,
        )

    async def forward(self, leader_url: str, request: ForwardedRequest) -> ForwardedResponse:
        try:
            response = await self._forward(leader_url, request)
        except ForwardingFailed as problem:
            if self._unreachable != leader_url:
                self._unreachable = leader_url
                log.warning("requests cannot be forwarded", leader=leader_url, reason=str(problem))
            raise
        if self._unreachable is not None:
            self._unreachable = None
            log.info("requests can be forwarded again", leader=leader_url)
        return response

    async def _forward(self, leader_url: str, request: ForwardedRequest) -> ForwardedResponse:
        if leader_url.startswith("https:") and not self._speaks_tls:
            raise ForwardingFailed(f"the leader {leader_url} uses https, but inter.instance.protocol is http")
        headers = {name: value for name, value in request.headers.items() if name.lower() in self._forwarded}
        headers[FORWARD_HEADER] = "false"
        try:
            response = await self._client.request(
                request.method, leader_url.rstrip("/") + request.target, headers=headers, content=request.body or None
            )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
            raise ForwardingFailed(
                f"the leader {leader_url} could not be reached: {str(problem) or type(problem).__name__}"
            ) from problem
        returned = {name: value for name, value in response.headers.items() if name.lower() in _RETURNED}
        return ForwardedResponse(response.status_code, returned, response.content)

    async def close(self) -> None:
        await self._client.aclose()
