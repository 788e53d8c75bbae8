"""Selects the state that requests are served from: none before the first replay, and a new one after the log was
replaced.

Each log that is read gets its own state, service and application. Requests reach the application once its state has
caught up. Work in progress of an earlier application ends with an error, because its log is no longer written.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from kaspar.base.log import get_log
from kaspar.registry.api.media_types import V1_JSON
from kaspar.registry.log.position import LogReplaced
from kaspar.registry.service import RegistryService
from kaspar.registry.state import State
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import ErrorBody, send_error

log = get_log(__name__)

_STORE_ERROR: Final = 50001
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Edition:
    """The state, service and application for one log."""

    state: State
    service: RegistryService
    app: App


NewEdition = Callable[[State, Callable[[], bool]], Edition]
"""Builds an Edition for a state, given a function that returns whether its log is still the current one."""


class ServedLog:
    """The ASGI application, which is also the audience of the log (log/follower.py)."""

    def __init__(self, topic: str, new_edition: NewEdition, leader_known: Callable[[], Awaitable[None]]) -> None:
        """Requests that may write wait for `leader_known`: during an election they are delayed instead of rejected."""
        self._topic = topic
        self._new_edition = new_edition
        self._leader_known = leader_known
        self._edition: Edition | None = None
        self._is_served = False
        self._why = "the schemas are being read"
        self.first_replay = asyncio.Event()

    # --- Audience of the log ------------------------------------------------------------------------------------------

    def begin(self, replaced: LogReplaced | None) -> State:
        if replaced is not None:
            self._why = f"{replaced}; the schemas are being read again"
        self._is_served = False
        self._close_edition()
        state = State()
        self._edition = self._new_edition(state, lambda: self._edition is not None and self._edition.state is state)
        return state

    def caught_up(self) -> None:
        self._is_served = True
        self.first_replay.set()
        log.info("the schemas were read and are served", topic=self._topic)

    def close(self) -> None:
        self._is_served, self._why = False, "the registry is shutting down"
        self._close_edition()

    def _close_edition(self) -> None:
        if self._edition is not None:
            self._edition.service.close()
            self._edition = None

    # --- Requests -----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _READS:
            await self._leader_known()
        edition = self._edition
        if edition is None or not self._is_served:
            await send_error(send, _store_error, 500, self._why)
            return
        await edition.app(scope, receive, send)


def _store_error(status: int, message: str) -> ErrorBody:
    body = {"error_code": _STORE_ERROR, "message": f"Error in the backend data store: {message}"}
    return ErrorBody(V1_JSON, msgspec.json.encode(body))
