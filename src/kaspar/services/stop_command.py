"""Commands that stop the services on this machine: they send SIGTERM, and return before the services have stopped."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kaspar.base.processes import ask_to_stop, running_programs

_START: Final = {
    "registry": ("schema-registry-start", "kaspar.services.schema_registry_start"),
    "rest": ("kafka-rest-start", "kaspar.services.kafka_rest_start"),
}


def stop_options(program: str, title: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=f"Stop every separately started instance of {title} on this machine, cleanly. Returns before "
        "they have stopped.",
        epilog="To stop what `kaspar up` runs, use `kaspar stop`.",
    )


def is_service(service: str, words: Sequence[str]) -> bool:
    """Whether this command line, starting at the program, runs the service in a process of its own."""
    match [Path(word).name for word in words[:2]]:
        case [program, *_] if program in _START[service]:
            return True
        case ["kaspar" | "kaspar.cli.main", command]:
            return command == service and not {"--help", "-h"} & set(words)
        case _:
            return False


def running(service: str) -> Iterator[int]:
    return (pid for pid, words in running_programs() if is_service(service, words))


def stop(program: str, service: str, title: str) -> int:
    """Stop the service's processes, and return the exit code: 0 if at least one was stopped and none refused."""
    stopped, refused = ask_to_stop(running(service))
    for pid in refused:
        print(f"{program}: the process {pid} belongs to another user", file=sys.stderr)
    if stopped == 0 and not refused:
        print(f"{program}: {title} is not running on this machine", file=sys.stderr)
    return 0 if stopped and not refused else 1
