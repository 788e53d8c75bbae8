"""Who may see what the monitor sees, where callers are known to the brokers: those who may describe the cluster.

The monitor looks with its own rights. What it has seen names all topics and groups, so its pages are not for callers
whom the brokers' ACLs would show only some of them. The console shows such callers their part.
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
"""For how long a caller who was permitted is not asked about again: dashboards ask often."""
_CALLERS: Final = 1000
_FOR_PROBES: Final = frozenset({"/burrow/admin", "/burrow/admin/ready"})
_FORBIDDEN: Final = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.SASL_AUTHENTICATION_FAILED})


class Permission:
    """An ASGI application in front of the monitor's own."""

    def __init__(self, app: App, sessions: AdminSessions, clock: Clock) -> None:
        self._app = app
        self._sessions = sessions
        self._permitted: BoundedCache[Identity, bool] = BoundedCache(
            _CALLERS, lifetime_s=REMEMBERED_S, monotonic=clock.monotonic
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        # Nobody is anonymous but on paths that need no authentication by the settings.
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
