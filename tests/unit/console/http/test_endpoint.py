"""What becomes of a change: in the response, and in the audit log."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from kaspar.base.clock import SystemClock
from kaspar.console.context import ConsoleContext
from kaspar.console.http import audit
from kaspar.console.http.endpoint import Call, Endpoint, changes
from kaspar.console.problems import Conflict
from kaspar.console.sharing import SharedReads

REQUEST = {
    "type": "http",
    "method": "DELETE",
    "path": "/",
    "headers": [],
    "query_string": b"",
    "client": ("10.0.0.1", 1),
}


def context_of(*, read_only: bool = False) -> ConsoleContext:
    """Of a console without a broker, which these changes do not ask."""
    settings = SimpleNamespace(kaspar_console_read_only=read_only)
    context = SimpleNamespace(
        config=SimpleNamespace(settings=settings), propagates=False, reads=SharedReads(SystemClock())
    )
    return cast("ConsoleContext", context)


def request_of(topic: str) -> Request:
    return Request({**REQUEST, "path_params": {"topic": topic}})


@changes("DELETE", "/api/topics/{topic}", action="delete topic", resource="topic {topic}")
async def remove(call: Call) -> None:
    call.note("with its records")
    if call.path["topic"] == "kept":
        raise Conflict("It is needed.")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__["values"] for record in caplog.records if record.name == audit.LOGGER]


@pytest.fixture(autouse=True)
def _audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", audit.LOGGER)


def test_a_change_that_is_made_or_refused_is_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    def status_of(topic: str, *, read_only: bool = False) -> int:
        return asyncio.run(remove.respond(context_of(read_only=read_only), request_of(topic))).status_code

    assert (status_of("orders"), status_of("kept"), status_of("orders", read_only=True)) == (204, 409, 403)
    done, refused, read_only = lines(caplog)
    assert done == {
        "caller": "anonymous",
        "client": "10.0.0.1",
        "action": "delete topic",
        "resource": "topic orders",
        "outcome": "done",
        "detail": "with its records",
    }
    assert (refused["resource"], refused["outcome"], refused["reason"]) == ("topic kept", "refused", "It is needed.")
    assert read_only["outcome"] == "refused"


def test_a_change_that_the_end_of_the_service_cuts_off_is_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        begun = asyncio.Event()

        async def slow(call: Call) -> None:
            begun.set()
            await asyncio.Event().wait()

        endpoint = Endpoint("DELETE", remove.path, slow, remove.action, remove.resource)
        change = asyncio.create_task(endpoint.respond(context_of(), request_of("orders")))
        await begun.wait()
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change

    asyncio.run(scenario())
    (line,) = lines(caplog)
    assert (line["resource"], line["outcome"]) == ("topic orders", "unknown")
