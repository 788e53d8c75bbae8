"""The gates that every request passes before it is handled: identity, permission, quota.

The pipeline (network/pipeline.py) calls them in this order, for every request and before any of its short forms is
used. The implementations here are Kafka's behaviour with no authenticating listener, no authorizer and no quota
configured.
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, Protocol

from kaspar.acls.principal import Principal as Principal
from kaspar.base.errors import KasparError
from kaspar.protocol.api_keys import ApiKey


class TokenPrincipal(Principal):
    """The owner of a delegation token who has logged in with it. Apart from its type it equals the owner."""

    __slots__ = ()


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""KafkaPrincipal.ANONYMOUS: the principal of a connection that does not authenticate."""


_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class Rejected(KasparError):
    """A connection sent a request that it may not send at all. It is closed, as in Kafka."""


class Authenticated(Protocol):
    """A connection, as the gates see it."""

    @property
    def peer(self) -> str: ...

    principal: Principal | None
    """None until it is known"""

    permitted: "Permitted | None"
    known: dict[int, Any]
    """The requests that are recognized by their bytes (network/recognition.py)."""

    @property
    def must_authenticate(self) -> bool: ...


class Permitted:
    """Known permissions of a connection, valid as long as neither its principal nor the ACLs change."""

    __slots__ = ("principal", "version", "writable")

    def __init__(self, principal: Principal, version: int) -> None:
        self.principal = principal
        self.version = version
        """The version of the ACLs."""
        self.writable: set[Hashable] = set()
        """The topics it may write, by name or by id."""


class Identity(Protocol):
    """Determines who sends the requests of a connection."""

    def authenticate(self, connection: Authenticated, api_key: int) -> Principal:
        """Called for each request while the connection has no principal, and sets it once it is known. Until then it
        returns the principal for requests that authenticate, and raises Rejected for all others.
        """
        ...


class Permission(Protocol):
    """What a principal may do. Permissions for topics or groups are checked by the guard of the request's handler,
    where its contents are known. Short forms of requests have no guard, so they are checked here.
    """

    @property
    def checks_topics(self) -> bool:
        """Whether `may_write` has to be called."""
        ...

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        """Whether short forms of requests may be used. Requests that are `known` to the connection are forgotten if
        they may no longer be allowed. Raises Rejected if the principal may not use the API at all.
        """
        ...

    def may_write(self, connection: Authenticated, topic: Any) -> bool:
        """Whether a batch may be appended to this topic without further checks. If not, the handler decides."""
        ...


class Quota(Protocol):
    """How much a client may use (KIP-13, KIP-124)."""

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        """Count this request. Returns for how long the client is throttled, if it is over its quota."""
        ...


class ConnectionIdentity:
    """Clients of a listener without authentication are anonymous. On other listeners, only ApiVersions reaches this
    gate before the client has authenticated (network/authentication.py).
    """

    def authenticate(self, connection: Authenticated, api_key: int) -> Principal:
        if not connection.must_authenticate:
            connection.principal = ANONYMOUS
        elif api_key != _API_VERSIONS:
            raise Rejected("a request before the client has authenticated")
        return ANONYMOUS


class NoAuthorizer:
    """Without an authorizer everything is allowed (`authorizer.class.name` is empty)."""

    checks_topics = False

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        return True

    def may_write(self, connection: Authenticated, topic: Any) -> bool:
        return True


class NoQuota:
    """Without a quota no client is throttled."""

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        return 0


class Gates(NamedTuple):
    """The gates of one broker, in the order in which requests pass them."""

    identity: Identity
    permission: Permission
    quota: Quota
