"""Requests with open-ended bodies: many records over one connection, with a response to each as it arrives."""

from typing import Final

from kaspar.web.asgi import Scope

_BODY_MODE: Final = "kaspar.body_mode"
"""The key of the scope."""


class BodyMode:
    """Shared by the server and the application, even if the scope is copied in between."""

    __slots__ = ("is_streaming",)

    def __init__(self) -> None:
        self.is_streaming = False

    def add_to(self, scope: Scope) -> None:
        scope[_BODY_MODE] = self


def allow_streaming(scope: Scope) -> None:
    """Called by an application before it reads the body. The total size and duration of the body are then unlimited.
    Pauses of the client are still limited, and so is the time for which it leaves the response unread."""
    mode: BodyMode | None = scope.get(_BODY_MODE)
    if mode is not None:  # a request without a body has none
        mode.is_streaming = True
