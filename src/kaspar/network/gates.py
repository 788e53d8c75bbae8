"""What every request passes before it is handled: who is asking, may they, are they over their quota.

The pipeline (network/pipeline.py) calls the three in this order, for every request and before any short form of one is
used. What stands here is Kafka's behaviour with no authenticating listener, no authorizer and no quota configured.
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, Protocol

from kaspar.acls.principal import Principal as Principal
from kaspar.base.errors import KasparError
from kaspar.protocol.api_keys import ApiKey


class TokenPrincipal(Principal):
    """The owner of a delegation token, who has logged in with it. Equal to the owner otherwise."""

    __slots__ = ()


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""KafkaPrincipal.ANONYMOUS: the principal of a connection that does not authenticate."""


_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class Rejected(KasparError):
    """A connection sent a request that it may not send at all: it is closed, as Kafka closes it."""


class Authenticated(Protocol):
    """What the gates know of a connection."""

    @property
    def peer(self) -> str: ...

    principal: Principal | None
    """None until it is known."""

    permitted: "Permitted | None"
    known: dict[int, Any]
    """The requests that are recognized by their bytes."""

    @property
    def must_authenticate(self) -> bool: ...


class Permitted:
    """What a connection is known to be allowed, as long as neither its principal nor the ACLs change."""

    __slots__ = ("principal", "version", "writable")

    def __init__(self, principal: Principal, version: int) -> None:
        self.principal = principal
        self.version = version
        """Of the ACLs."""
        self.writable: set[Hashable] = set()
        """Topics, by name or by id."""


class Identity(Protocol):
    """Who sends the requests of a connection."""

    def authenticate(self, connection: Authenticated, api_key: int) -> Principal:
        """Called for each request while the connection has no principal. Sets it once it is known; until then returns
        the one for requests that authenticate, and raises Rejected for all others.
        """
        ...


class Permission(Protocol):
    """What a principal may do. Which topics or groups a request may touch is decided where its contents are known: by
    the guard of its handler. Short forms of requests have none, so they ask here.
    """

    @property
    def checks_topics(self) -> bool:
        """Whether `may_write` has to be asked."""
        ...

    def check(self, connection: Authenticated, principal: Principal, api_key: int) -> bool:
        """Whether short forms of requests may be used. What the connection `known`s is forgotten where it may not be
        allowed any longer. Raises Rejected where the principal may not use the API at all.
        """
        ...

    def may_write(self, connection: Authenticated, topic: Any) -> bool:
        """Whether a batch may be appended to this topic without further checks. False: it is left to the handler."""
        ...


class Quota(Protocol):
    """How much a client may use (KIP-13, KIP-124)."""

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        """Count this request. If the client is over its quota: for how long it is throttled."""
        ...


class ConnectionIdentity:
    """A client of a listener that does not authenticate is anonymous. Where it has to authenticate, only ApiVersions
    comes here before it has (network/authentication.py).
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
    """Without a quota nobody is throttled."""

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        return 0


class Gates(NamedTuple):
    """Those of one broker, in the order in which requests pass them."""

    identity: Identity
    permission: Permission
    quota: Quota
