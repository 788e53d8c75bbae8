"""What becomes of a change: in the response, and in the audit log."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import ClientDisconnect, Request

from kaspar.base.clock import SystemClock
from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.console.context import ConsoleContext
from kaspar.console.http import audit
from kaspar.console.http.endpoint import Call, Endpoint, changes
from kaspar.console.http.errors import CallFailed
from kaspar.console.problems import Conflict, NotThere, PartlyRefused, Unfinished, check_parts
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


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        (Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "No."), "refused"),
        (Refused(ErrorCode.INVALID_REQUEST, "No."), "refused"),
        (NotThere("There is none."), "refused"),
        (ClientDisconnect(), "refused"),
        (CallFailed(404, "There is no subject."), "refused"),
        (CallFailed(502, "The registry did not respond.", is_refusal=False), "unknown"),
        (Refused(ErrorCode.REQUEST_TIMED_OUT, "Timed out."), "unknown"),
        (Refused(ErrorCode.NETWORK_EXCEPTION, "Cut."), "unknown"),
        (ConnectionResetError("The broker closed the connection"), "unknown"),
        (MalformedBytes("It is no response"), "unknown"),
        (Unfinished("The change is written, but the host does not respond"), "unknown"),
        (PartlyRefused(ErrorCode.INVALID_REQUEST, "Partition 2: No."), "unknown"),
        (ZeroDivisionError("a bug"), "unknown"),
    ],
)
def test_a_change_that_may_have_been_made_is_not_called_refused(
    problem: Exception, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(call: Call) -> None:
        raise problem

    endpoint = Endpoint("DELETE", remove.path, fail, remove.action, remove.resource)
    with contextlib.suppress(ZeroDivisionError):
        asyncio.run(endpoint.respond(context_of(), request_of("orders")))
    (line,) = lines(caplog)
    assert (line["outcome"], line.get("reason", "")) == (outcome, str(problem))


def test_a_refusal_of_some_parts_is_another_than_that_of_all() -> None:
    first, second = Refused(ErrorCode.INVALID_REQUEST, "No."), Refused(ErrorCode.POLICY_VIOLATION, "Nor this.")
    check_parts([None, [], 3])
    with pytest.raises(Refused) as all_of_them:
        check_parts([first, second])
    assert all_of_them.value is first
    with pytest.raises(PartlyRefused, match="Nor this") as some_of_them:
        check_parts([None, second])
    assert some_of_them.value.code is ErrorCode.POLICY_VIOLATION


def test_shared_reads_are_forgotten_after_changes_that_may_have_been_made() -> None:
    async def reads_after(problem: Exception | None) -> int:
        count, context = 0, context_of()

        async def change(call: Call) -> None:
            if problem is not None:
                raise problem

        async def read() -> int:
            nonlocal count
            count += 1
            return count

        await context.reads.get("topics", read)
        endpoint = Endpoint("DELETE", remove.path, change, remove.action, remove.resource)
        await endpoint.respond(context, request_of("orders"))
        return await context.reads.get("topics", read)

    assert asyncio.run(reads_after(None)) == 2
    assert asyncio.run(reads_after(OSError("cut"))) == 2
    assert asyncio.run(reads_after(Conflict("It is needed."))) == 1


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
