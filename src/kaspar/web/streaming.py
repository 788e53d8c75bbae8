"""Requests whose bodies are open-ended: many records over one connection, with a response to each as it arrives."""

from typing import Final

from kaspar.web.asgi import Scope

STREAMING: Final = "kaspar.streaming"
"""The key of the scope."""


def allow_streaming(scope: Scope) -> None:
    """Called by an application before it reads the body: the size of the whole body and the time that it takes are then
    not limited. How long a client may send nothing still is, and so is how long it may leave the response unread."""
    scope[STREAMING] = True
