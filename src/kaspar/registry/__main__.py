"""`python -m kaspar.registry FILE`: one registry, served in the foreground."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from kaspar.base import log as logging
from kaspar.base.errors import KasparError
from kaspar.config.files import load_settings
from kaspar.registry.running import RegistryServer
from kaspar.registry.settings import RegistryConfig, RegistrySettings
from kaspar.web.limits import connection_limits
from kaspar.web.listeners import bind_all, parse_listeners
from kaspar.web.server import WebServer

log = logging.get_log("kaspar.registry")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kaspar.registry")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    logging.configure()
    try:
        values = load_settings(arguments.file)
        config = RegistryConfig.of(values)
        for sentence in RegistrySettings.warnings_about(values):
            log.warning(sentence)
        uvloop.run(_serve(config))
    except KasparError as problem:
        print(f"the registry has not started: {problem}", file=sys.stderr)
        return 1
    return 0


async def _serve(config: RegistryConfig) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    settings = config.settings
    listeners = bind_all(parse_listeners(settings.listeners, settings.listener_protocol_map), "the registry")
    registry = RegistryServer(config)
    registry.bound([str(listener.address) for listener in listeners])
    starting = asyncio.create_task(registry.start())
    waiting = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return
        await starting
        server = WebServer(registry.app, listeners, limits=connection_limits(settings), error_form=registry.error_form)
        await server.start()
        log.info("the registry is ready", listeners=",".join(registry.listeners))
        await waiting
        await server.stop(settings.shutdown_graceful_ms / 1000)
    finally:
        for task in (starting, waiting):
            task.cancel()
        await asyncio.wait([starting, waiting])
        await registry.stop()


if __name__ == "__main__":
    sys.exit(main())
