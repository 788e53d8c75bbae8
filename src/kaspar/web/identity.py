"""The caller of a request, which the application reads from the ASGI scope.

    caller = caller_of(request.scope)
    if not caller.is_anonymous and permits(caller.name, ...): ...

The web server has checked it before the application runs.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kaspar.web.asgi import Scope

CALLER: Final = "kaspar.caller"
"""The key of the scope."""


class Scheme(Enum):
    """How a caller has authenticated, with the name that HTTP has for it."""

    BASIC = "basic"
    BEARER = "bearer"
    CERTIFICATE = "certificate"
    """By mutual TLS, without a header."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`credentials` is what can be passed on to a broker: the password (BASIC) or the token (BEARER)."""

    name: str | None
    """None if callers need not authenticate, or if the credentials file gives the token no name."""
    scheme: Scheme | None = None
    credentials: str | None = field(default=None, repr=False)

    @property
    def is_anonymous(self) -> bool:
        return self.scheme is None


ANONYMOUS: Final = Caller(None)


def caller_of(scope: Scope) -> Caller:
    caller: Caller = scope.get(CALLER, ANONYMOUS)
    return caller
