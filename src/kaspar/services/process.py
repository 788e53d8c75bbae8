"""Runs one or several services in one process, each with the settings of its own file."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.garbage import collect_garbage_rarely
from kaspar.config import load_settings
from kaspar.services.making import make_services, warnings_about
from kaspar.web.running import run_services

_PAUSE_S: Final = 0.05


def run_files(
    files: Mapping[str, Path | None],
    *,
    overrides: Sequence[str] = (),
    after: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Run the services until they are stopped, and return the exit code. `files` has the settings file of each service;
    None stands for the defaults. The services start when the file `after` exists. `say` receives a line for each
    service when all of them serve."""
    try:
        settings = {name: load_settings(file, overrides) for name, file in files.items()}
        services = make_services(settings)
        for service in services:
            for sentence in warnings_about(service, settings[service.name]):
                print(f"kaspar: {service.name}: {sentence}", file=sys.stderr)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1

    def ready(urls: Mapping[str, tuple[str, ...]]) -> None:
        collect_garbage_rarely()
        for name, of_service in urls.items():
            say(f"{name} serves {' and '.join(of_service)}")

    while after is not None and not after.exists():
        time.sleep(_PAUSE_S)
    return run_services(services, ready=ready)
