"""Administrative calls on behalf of requests, made in threads, with the identity of the caller.

    description = await sessions.call(identity, lambda admin: describe_topics(admin, [name]))

A session serves one call at a time. A few idle sessions are kept for each identity, so that most calls need no new
connection.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from kaspar.base.errors import Refused
from kaspar.callers.clients import KafkaClients
from kaspar.callers.identities import Identity
from kaspar.client.admin.session import Admin

_THREADS: Final = 16
_KEPT: Final = 4

_Result = TypeVar("_Result")


class AdminSessions:
    def __init__(
        self, clients: KafkaClients, *, identities: int, final: tuple[type[Exception], ...] = (), name: str
    ) -> None:
        """`identities` is the number of identities for which idle sessions are kept. A session is reused after Refused
        and after the errors in `final`; any other error closes it. `name` is the prefix of thread names."""
        self._clients = clients
        self._identities = identities
        self._final: tuple[type[Exception], ...] = (Refused, *final)
        self._idle: OrderedDict[Identity, list[Admin]] = OrderedDict()
        self._lock = threading.Lock()
        self._is_closed = False
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=name)

    async def call(self, identity: Identity, function: Callable[[Admin], _Result]) -> _Result:
        """Call the function with a session in a thread. Returns what it returns, and raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._call, identity, function)

    def _call(self, identity: Identity, function: Callable[[Admin], _Result]) -> _Result:
        session = self._take(identity)
        try:
            result = function(session)
        except self._final:
            self._keep(identity, session)
            raise
        except BaseException:
            session.close()
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
        """Close idle sessions, and wait for calls in progress."""
        with self._lock:
            self._is_closed = True
            closing = [session for sessions in self._idle.values() for session in sessions]
            self._idle.clear()
        for session in closing:
            session.close()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
