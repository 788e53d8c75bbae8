"""Runs a broker as a process: signals stop it cleanly, a broken invariant stops it with exit code 1."""

import asyncio
import signal
import sys
from collections.abc import Callable

import uvloop

from kaspar.base import log as structured_log
from kaspar.base.errors import KasparError
from kaspar.base.garbage import collect_garbage_rarely
from kaspar.broker import loggers
from kaspar.broker.memory import keep_freed_memory
from kaspar.broker.server import Broker
from kaspar.config import BrokerSettings, warnings_about

log = structured_log.get_log(__name__)

# How long another thread keeps the interpreter once the event loop wants it; Python's default is 5 ms.
SWITCH_INTERVAL_S = 0.001


def run_broker(settings: BrokerSettings, *, ready: Callable[[Broker], None] = lambda broker: None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code."""
    try:
        loggers.configure(settings.config)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    for sentence in warnings_about(settings.static):
        log.warning(sentence)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_freed_memory()
    try:
        return uvloop.run(_serve(settings, ready))
    except KasparError as problem:
        structured_log.flush()
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1


async def _serve(settings: BrokerSettings, ready: Callable[[Broker], None]) -> int:
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    broker: Broker | None = None

    async def start() -> Broker:
        nonlocal broker
        broker = Broker(await _identified(settings))
        await broker.start()
        return broker

    try:
        starting = loop.create_task(start())
        stop_asked = loop.create_task(asked_to_stop.wait())
        await asyncio.wait((starting, stop_asked), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
            return 0
        started = starting.result()
        collect_garbage_rarely()
        ready(started)
        await asyncio.wait((stop_asked, started.failure), return_when=asyncio.FIRST_COMPLETED)
        stop_asked.cancel()
        if started.failure.done():
            log.error("stopping: data integrity cannot be guaranteed", reason=started.failure.result())
            return 1
        return 0
    finally:
        if broker is not None:
            await broker.stop()


async def _identified(settings: BrokerSettings) -> BrokerSettings:
    if settings.config.zookeeper_connect is None:
        return settings
    from kaspar.broker.cluster.generated_id import with_node_id

    return await with_node_id(settings)
