"""Administrative calls of requests, made in threads.

    description = await admin.call(identity, lambda session: describe_topics(session, [name]))

A session serves one call at a time. Idle ones are kept, a few for each identity, so that a call needs no new
connection.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from kaspar.base.errors import KasparError, Refused
from kaspar.client.admin.session import Admin
from kaspar.client.core import UnsupportedByPeer
from kaspar.rest.clients import KafkaClients
from kaspar.rest.errors import KAFKA, KAFKA_BAD_REQUEST, KAFKA_RETRIABLE, RestError, from_refusal
from kaspar.rest.identities import Identity

_THREADS: Final = 16
_KEPT: Final = 4

_Result = TypeVar("_Result")


class Administration:
    def __init__(self, clients: KafkaClients, *, identities: int) -> None:
        """Idle sessions are kept for at most this many identities."""
        self._clients = clients
        self._identities = identities
        self._idle: OrderedDict[Identity, list[Admin]] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-admin")

    async def call(self, identity: Identity, function: Callable[[Admin], _Result]) -> _Result:
        """What the function returns. Raises RestError for what is raised as Refused, and if no broker responds."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._call, identity, function)

    def _call(self, identity: Identity, function: Callable[[Admin], _Result]) -> _Result:
        session = self._take(identity)
        try:
            result = function(session)
        except RestError:
            self._keep(identity, session)
            raise
        except Refused as refused:
            self._keep(identity, session)
            raise from_refusal(refused) from None
        except BaseException as problem:
            session.close()
            if isinstance(problem, UnsupportedByPeer):
                raise RestError(KAFKA_BAD_REQUEST, str(problem)) from None
            if isinstance(problem, OSError):
                raise RestError(KAFKA_RETRIABLE, f"no broker can be reached: {problem}") from None
            if isinstance(problem, KasparError):
                raise RestError(KAFKA, str(problem)) from None
            raise
        self._keep(identity, session)
        return result

    def _take(self, identity: Identity) -> Admin:
        with self._lock:
            if sessions := self._idle.get(identity):
                return sessions.pop()
        return self._clients.new_admin(identity)

    def _keep(self, identity: Identity, session: Admin) -> None:
        closing: list[Admin] = []
        with self._lock:
            sessions = self._idle.setdefault(identity, [])
            self._idle.move_to_end(identity)
            (closing if self._is_closed or len(sessions) >= _KEPT else sessions).append(session)
            while len(self._idle) > self._identities:
                closing += self._idle.popitem(last=False)[1]
        for each in closing:
            each.close()

    async def close(self) -> None:
        """Waits for calls under way."""
        with self._lock:
            self._is_closed = True
            closing = [session for sessions in self._idle.values() for session in sessions]
            self._idle.clear()
        for session in closing:
            session.close()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
