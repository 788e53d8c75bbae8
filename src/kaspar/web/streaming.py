"""Requests whose bodies are open-ended: many records over one connection, with a response to each as it arrives."""

from typing import Final

from kaspar.web.asgi import Scope

_BODY_MODE: Final = "kaspar.body_mode"
"""The key of the scope."""


class BodyMode:
    """Shared by the server and the application, however often the scope is copied in between."""

    __slots__ = ("is_streaming",)

    def __init__(self) -> None:
        self.is_streaming = False

    def add_to(self, scope: Scope) -> None:
        scope[_BODY_MODE] = self


def allow_streaming(scope: Scope) -> None:
    """Called by an application before it reads the body: the size of the whole body and the time that it takes are then
    not limited. How long a client may send nothing still is, and so is how long it may leave the response unread."""
    mode: BodyMode | None = scope.get(_BODY_MODE)
    if mode is not None:  # a request without a body has none
        mode.is_streaming = True
