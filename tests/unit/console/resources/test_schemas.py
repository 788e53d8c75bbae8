"""The list of schemas, of a registry that does not respond."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from kaspar.base.clock import SystemClock
from kaspar.console.context import ConsoleContext
from kaspar.console.registries import CallersRegistry, Registries
from kaspar.console.resources.schemas import subjects
from kaspar.console.sharing import SharedReads
from kaspar.serialization.errors import RegistryUnavailable

SUBJECTS = 300


def list_request() -> Request:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "path_params": {}}
    return Request({**scope, "query_string": f"limit={SUBJECTS}".encode()})


def test_a_registry_that_hangs_keeps_no_other_calls_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    first_fails, others_fail = threading.Event(), threading.Event()
    begun, asked = asyncio.Event(), list[str]()
    loop: asyncio.AbstractEventLoop

    def request(self: CallersRegistry, method: str, path: str, *rest: Any) -> Any:
        if path == "/subjects":
            return [f"s-{number}" for number in range(SUBJECTS)]
        asked.append(path)
        loop.call_soon_threadsafe(begun.set)
        (first_fails if len(asked) == 1 else others_fail).wait(30)
        raise RegistryUnavailable("It did not respond in time.")

    monkeypatch.setattr(CallersRegistry, "request", request)

    async def scenario() -> int:
        nonlocal loop
        loop = asyncio.get_running_loop()
        registries = Registries({"schema.registry.url": "http://127.0.0.1:1"}, identities=5)
        context = SimpleNamespace(propagates=False, registries=registries, reads=SharedReads(SystemClock()))
        listing = asyncio.create_task(subjects.respond(cast("ConsoleContext", context), list_request()))
        try:
            await begun.wait()
            async with asyncio.timeout(20):
                assert await asyncio.to_thread(lambda: "a pipeline") == "a pipeline"
            first_fails.set()
            response = await listing
        finally:
            others_fail.set()
            registries.close()
        return response.status_code

    assert asyncio.run(scenario()) == 502
    assert len(asked) < SUBJECTS / 2, "what had not begun is dropped"
