"""Permission to read the monitor's pages, if callers have an identity at the brokers: it requires DESCRIBE on the
cluster.

The monitor uses its own permissions, and its pages name all topics and groups. So they are not for callers that may see
only some of them according to the brokers' ACLs. The console shows such callers their part.
"""

from typing import Final

from kaspar.acls.acl import AclOperation
from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.callers.identities import Identity, identity_of
from kaspar.callers.permissions import require_cluster
from kaspar.callers.sessions import AdminSessions
from kaspar.monitor.http.responses import burrow_error
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import send_error
from kaspar.web.identity import caller_of

REMEMBERED_S: Final = 10.0
"""How long a permitted caller is not checked again, because dashboards send many requests."""
_CALLERS: Final = 1000
_FOR_PROBES: Final = frozenset({"/burrow/admin", "/burrow/admin/ready"})
_FORBIDDEN: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.SASL_AUTHENTICATION_FAILED})


class Permission:
    """An ASGI application that wraps the monitor's own."""

    def __init__(self, app: App, sessions: AdminSessions, clock: Clock) -> None:
        self._app = app
        self._sessions = sessions
        self._permitted: BoundedCache[Identity, bool] = BoundedCache(
            _CALLERS, lifetime_s=REMEMBERED_S, monotonic=clock.monotonic
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        # Callers are anonymous only on paths that are configured to need no authentication.
        if not caller.is_anonymous and scope["path"].rstrip("/") not in _FOR_PROBES:
            try:
                await self._require(identity_of(caller, propagate=True))
            except Refused as refused:
                status = 403 if refused.code in _FORBIDDEN else 503
                await send_error(send, burrow_error, status, refused.message)
                return
            except OSError as problem:
                await send_error(send, burrow_error, 503, str(problem))
                return
        await self._app(scope, receive, send)

    async def _require(self, identity: Identity) -> None:
        """Raises Refused and OSError."""
        if self._permitted.get(identity) is None:
            await self._sessions.call(
                identity, lambda admin: require_cluster(admin, AclOperation.DESCRIBE, "To see what the monitor sees")
            )
            self._permitted.put(identity, True)
