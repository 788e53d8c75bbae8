"""Runs a broker as a process: signals stop it cleanly, a broken invariant stops it with exit code 1."""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import uvloop

from kaspar.base import log as structured_log
from kaspar.base.errors import KasparError
from kaspar.broker.server import Broker
from kaspar.config import BrokerConfig

log = structured_log.get_log(__name__)


def run_broker(config: BrokerConfig, *, ready: Callable[[Broker], None] = lambda broker: None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    structured_log.configure(level=config.kaspar_log_level, file=Path(config.kaspar_log_file) if config.kaspar_log_file else None)
    try:
        return uvloop.run(_serve(config, ready))
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1


async def _serve(config: BrokerConfig, ready: Callable[[Broker], None]) -> int:
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    broker = Broker(config)
    try:
        starting = loop.create_task(broker.start())
        stop_asked = loop.create_task(asked_to_stop.wait())
        await asyncio.wait((starting, stop_asked), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait((starting,))
            return 0
        starting.result()
        ready(broker)
        await asyncio.wait((stop_asked, broker.failure), return_when=asyncio.FIRST_COMPLETED)
        stop_asked.cancel()
        if broker.failure.done():
            log.error("the broker stops: it can no longer vouch for its data", reason=broker.failure.result())
            return 1
        return 0
    finally:
        await broker.stop()
