"""The types of ASGI, the interface between a server and an application."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this name. The name must be in lower case."""
    return next((value for each, value in scope["headers"] if each == name), None)
