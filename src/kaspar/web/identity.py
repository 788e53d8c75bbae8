"""The caller of a request, which the application reads from the ASGI scope.

    caller = caller_of(request.scope)
    if not caller.is_anonymous and permits(caller.name, ...): ...

The web server has authenticated the caller before the application runs.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kaspar.web.asgi import Scope

CALLER: Final = "kaspar.caller"
"""The key of the scope."""


class Scheme(Enum):
    """How a caller authenticated. The values are HTTP's names."""

    BASIC = "basic"
    BEARER = "bearer"
    CERTIFICATE = "certificate"
    """By mutual TLS, without a header."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`credentials` can be passed on to a broker: the password (BASIC) or the token (BEARER)."""

    name: str | None
    """None if callers need not authenticate, or if the credentials file has no name for the token."""
    scheme: Scheme | None = None
    credentials: str | None = field(default=None, repr=False)

    @property
    def is_anonymous(self) -> bool:
        return self.scheme is None


ANONYMOUS: Final = Caller(None)


def caller_of(scope: Scope) -> Caller:
    caller: Caller = scope.get(CALLER, ANONYMOUS)
    return caller
