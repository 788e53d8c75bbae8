"""Commands that start one service, with Confluent's usage: `schema-registry-start [-daemon] FILE`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

_SETTINGS = {"registry": "schema-registry.properties", "rest": "kafka-rest.properties"}


def start_options(program: str, service: str, title: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description=f"Run {title} until SIGTERM or Ctrl-C.",
        epilog=f"Example: {program} {_SETTINGS[service]} --override listeners=http://0.0.0.0:8081",
    )
    parser.add_argument("-daemon", "--daemon", action="store_true", help="run in the background")
    parser.add_argument(
        "properties",
        type=Path,
        help=f"the settings file, with Confluent's names (docs/reference/{service}-settings.md)",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that takes precedence over the file; may be repeated",
    )
    return parser


def start(service: str, file: Path | None, overrides: Sequence[str], *, daemon: bool = False) -> int:
    """Run the service, and return the exit code."""
    # Imported here so that --help is fast.
    from kaspar.services.process import run_files

    if daemon:
        from kaspar.base.processes import detach

        detach()
    return run_files({service: file}, overrides=overrides, say=lambda line: print(line, flush=True))
