"""Declarations of the API's resources, and the `Call` that their handlers get.

    @reads("/api/topics/{topic}")
    async def topic(call: Call) -> TopicView:
        return await call.shared(("topic", call.path["topic"]), partial(read_topic, name=call.path["topic"]))

    @changes("DELETE", "/api/topics/{topic}", action="delete topic", resource="topic {topic}")
    async def remove_topic(call: Call) -> None:
        await call.ask(partial(delete_topic, name=call.path["topic"]))

The result of a handler is sent as JSON. Its exception becomes a status and a sentence (`errors`). Every change is
recorded in the audit log, whether it was made or refused, or its outcome is unknown.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from kaspar.callers.identities import SERVICE, Identity, identity_of
from kaspar.client.admin.groups import list_groups
from kaspar.client.admin.session import Admin
from kaspar.console.context import ConsoleContext
from kaspar.console.http import audit
from kaspar.console.http.audit import Outcome
from kaspar.console.http.errors import CallFailed, failure_of, failure_of_change, is_refusal
from kaspar.console.problems import Unacceptable
from kaspar.web.identity import caller_of

MOST_ROWS: Final = 500
"""The maximum number of rows of a list in one response."""
_MAX_INT: Final = (1 << 31) - 1
_NO_STORE: Final = {"cache-control": "no-store"}

_Body = TypeVar("_Body")
_Choice = TypeVar("_Choice", bound=StrEnum)
_Result = TypeVar("_Result")

encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class Call:
    """A request to a resource, made by a caller."""

    def __init__(self, context: ConsoleContext, request: Request) -> None:
        """Raises NoCredentials."""
        self.context = context
        self.request = request
        self.path: Mapping[str, str] = request.path_params
        self.caller = caller_of(request.scope)
        self.identity: Identity = identity_of(self.caller, propagate=context.propagates)
        self.notes: list[str] = []

    # --- the request --------------------------------------------------------------------------------------------------

    def text(self, name: str, default: str = "") -> str:
        """A parameter of the query string."""
        return self.request.query_params.get(name, default)

    def texts(self, name: str) -> list[str]:
        return self.request.query_params.getlist(name)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("1", "true")

    def number(self, name: str, default: int, *, least: int = 0, most: int = _MAX_INT) -> int:
        """Raises Unacceptable."""
        return parse_number(name, self.text(name, str(default)), least, most)

    def limit(self) -> int:
        """The requested number of rows of a list. Raises Unacceptable."""
        return self.number("limit", 50, least=1, most=MOST_ROWS)

    def path_number(self, name: str) -> int:
        """Raises Unacceptable."""
        return parse_number(name, self.path[name])

    def choice(self, name: str, default: _Choice) -> _Choice:
        """Raises Unacceptable."""
        kind = type(default)
        try:
            return kind(self.text(name, default))
        except ValueError:
            raise Unacceptable(f"{name} must be one of {', '.join(kind)}.") from None

    async def body(self, kind: type[_Body]) -> _Body:
        """The JSON body as a value of this type: a dataclass or a msgspec.Struct. Raises Unacceptable."""
        try:
            return msgspec.json.decode(await self.request.body(), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise Unacceptable(f"Invalid request: {problem}.") from None

    # --- calls to the cluster -----------------------------------------------------------------------------------------

    async def ask(self, function: Callable[[Admin], _Result]) -> _Result:
        """Call the function in a thread, with a session of the caller's identity, and return its result."""
        return await self.context.sessions.call(self.identity, function)

    async def shared(self, what: Hashable, function: Callable[[Admin], _Result]) -> _Result:
        """Like `ask`, but the result is shared for about a second with other callers of this identity that request the
        same. It must not be modified."""
        return await self.context.reads.get((self.identity, what), lambda: self.ask(function))

    async def visible_groups(self) -> frozenset[str] | None:
        """The groups that the caller may describe, to filter the monitor's data; None for all groups."""
        if not self.context.propagates:
            return None
        return await self.shared(
            "visible groups", lambda admin: frozenset(each.group_id for each in list_groups(admin))
        )

    def note(self, detail: str) -> None:
        """Add a detail of the change to its line in the audit log, beside the resource."""
        self.notes.append(detail)

    @property
    def who(self) -> str:
        """The user that brokers see, as the start of a sentence."""
        if self.identity == SERVICE:
            return "The console's own user"
        return f"The user {self.identity.name or 'of this token'}"


def parse_number(name: str, text: str, least: int = 0, most: int = _MAX_INT) -> int:
    """Raises Unacceptable."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 10 and least <= int(text) <= most:
        return int(text)
    raise Unacceptable(f"{name} must be a number from {least} to {most}, not {text[:100]!r}.")


Handler = Callable[[Call], Awaitable[Any]]
"""Returns a value that is sent as JSON, None for an empty response, or a whole Response."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    handler: Handler
    action: str = ""
    """The name of the change in the audit log; empty for a read."""
    resource: str = ""
    """The name of the resource in the audit log, with parameters of the path: `topic {topic}`."""

    async def respond(self, context: ConsoleContext, request: Request) -> Response:
        call: Call | None = None
        try:
            call = Call(context, request)
            result = await self._run(call)
        except ClientDisconnect:
            return Response(status_code=400)  # the client has disconnected
        except Exception as problem:
            explain = failure_of_change if self.action else failure_of
            failure = explain(problem, "This caller" if call is None else call.who)
            if failure is None:
                raise
            return failure.response()
        if isinstance(result, Response):
            return result
        if result is None:
            return Response(status_code=204)
        return Response(encode(result), media_type="application/json", headers=_NO_STORE)

    async def _run(self, call: Call) -> Any:
        if not self.action:
            return await self.handler(call)
        outcome, reason = Outcome.DONE, ""
        try:
            if call.context.config.settings.kaspar_console_read_only:
                raise CallFailed(403, "The console is read-only: kaspar.console.read.only is true.")
            return await self.handler(call)
        except asyncio.CancelledError:  # the service stops, but what was sent to a broker may still be done
            outcome = Outcome.UNKNOWN
            raise
        except Exception as problem:
            outcome, reason = Outcome.REFUSED if is_refusal(problem) else Outcome.UNKNOWN, str(problem)
            raise
        finally:
            if outcome is not Outcome.REFUSED:
                call.context.reads.forget()
            audit.record(
                call.request.scope,
                self.action,
                self.resource.format_map(call.path),
                outcome,
                detail=", ".join(call.notes),
                reason=reason,
            )


def reads(path: str) -> Callable[[Handler], Endpoint]:
    return lambda handler: Endpoint("GET", path, handler)


def changes(method: str, path: str, *, action: str, resource: str) -> Callable[[Handler], Endpoint]:
    """Declare a change. `action` and `resource` are for the audit log."""
    return lambda handler: Endpoint(method, path, handler, action, resource)


@dataclass(frozen=True, slots=True)
class Channel:
    """A value that pages can watch (`resources.events`): it is sent to them when it has changed."""

    name: str
    read: Callable[[Call, str], Awaitable[Any]]
    """The second argument is the text after the colon in the page's request: `group:billing`."""


def watched(name: str) -> Callable[[Callable[[Call, str], Awaitable[Any]]], Channel]:
    return lambda read: Channel(name, read)
