"""Administrative calls on behalf of requests (kaspar.callers.sessions), with failures converted to the API's errors."""

from collections.abc import Callable
from typing import TypeVar

from kaspar.base.errors import KasparError, Refused
from kaspar.callers.clients import KafkaClients
from kaspar.callers.identities import Identity
from kaspar.callers.sessions import AdminSessions
from kaspar.client.admin.session import Admin
from kaspar.client.core import UnsupportedByPeer
from kaspar.rest.errors import KAFKA, KAFKA_BAD_REQUEST, KAFKA_RETRIABLE, RestError, from_refusal

_Result = TypeVar("_Result")


class Administration:
    def __init__(self, clients: KafkaClients, *, identities: int) -> None:
        """Idle sessions are kept for at most this many identities."""
        self._sessions = AdminSessions(clients, identities=identities, final=(RestError,), name="rest-admin")

    async def call(self, identity: Identity, function: Callable[[Admin], _Result]) -> _Result:
        """Return the result of the function. Raises RestError where it raises Refused, and if no broker responds."""
        try:
            return await self._sessions.call(identity, function)
        except RestError:
            raise
        except Refused as refused:
            raise from_refusal(refused) from None
        except UnsupportedByPeer as problem:
            raise RestError(KAFKA_BAD_REQUEST, str(problem)) from None
        except OSError as problem:
            raise RestError(KAFKA_RETRIABLE, f"no broker can be reached: {problem}") from None
        except KasparError as problem:
            raise RestError(KAFKA, str(problem)) from None

    async def close(self) -> None:
        """Waits for calls in progress."""
        await self._sessions.close()
