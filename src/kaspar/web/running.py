"""Runs hosted services as a process: SIGTERM and SIGINT stop it cleanly."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import uvloop

from kaspar.base import log as structured_log
from kaspar.base.errors import KasparError
from kaspar.web.host import Host
from kaspar.web.hosting import HostedService

_SWITCH_INTERVAL_S: Final = 0.001
"""The time for which a thread, such as one that searches records, may hold the GIL while the event loop waits for it.
Python's default of 5 ms would delay every request by that much for each thread."""

Ready: TypeAlias = Callable[[Mapping[str, tuple[str, ...]]], None]
"""Called with the URLs of each service."""


def run_services(
    services: Sequence[HostedService],
    *,
    ready: Ready = lambda urls: None,
) -> int:
    """Run the services, and return the exit code. Binds all listeners, starts the services, and calls `ready`. The log
    is configured by the settings of the first service."""
    settings = services[0].settings
    file = Path(settings.kaspar_log_file) if settings.kaspar_log_file else None
    structured_log.configure(level=settings.kaspar_log_level.upper(), file=file)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        return uvloop.run(_serve(Host(services), ready))
    except KasparError as problem:
        structured_log.flush()
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1


async def _serve(host: Host, ready: Ready) -> int:
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    starting = loop.create_task(host.start())
    stopping = loop.create_task(asked_to_stop.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            ready(host.urls)
            await stopping
        return 0
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.wait((starting, stopping))
        await host.stop()
