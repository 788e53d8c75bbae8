"""Runs asynchronous tests on asyncio's event loop and on uvloop, which brokers use."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import uvloop

Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
PATIENCE_S = 30.0


def runner(loop_name: str) -> Run:
    """Also fails the test for what the event loop reports, such as an exception that was never retrieved."""

    def run(test: Coroutine[Any, Any, None]) -> None:
        reported: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
            runner.get_loop().set_exception_handler(lambda loop, context: reported.append(context))
            runner.run(asyncio.wait_for(test, PATIENCE_S))
        assert not reported

    return run
