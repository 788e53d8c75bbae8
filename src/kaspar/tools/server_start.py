"""kafka-server-start: runs a broker with the settings of a properties file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kaspar.base.errors import KasparError


def parser(program: str, *, file_required: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Run a broker until SIGTERM or Ctrl-C.",
        epilog=f"Example: {program} server.properties --override listeners=PLAINTEXT://127.0.0.1:9092",
    )
    parser.add_argument("-daemon", "--daemon", action="store_true", help="run in the background")
    parser.add_argument(
        "properties",
        nargs=None if file_required else "?",
        help="the settings file, with Kafka's names (docs/reference/broker-settings.md)",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that takes precedence over the file; may be repeated",
    )
    return parser


def command_options() -> argparse.ArgumentParser:
    return parser("kafka-server-start", file_required=True)


def run(properties: str | None, overrides: Sequence[str], *, daemon: bool) -> int:
    # Imported here so that --help is fast.
    from kaspar.base.processes import detach
    from kaspar.broker.run import run_broker
    from kaspar.config import BrokerSettings, load_settings

    try:
        file = Path(properties) if properties else None
        settings = BrokerSettings.of(load_settings(file, overrides))
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    if daemon:
        detach()
    return run_broker(settings)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = command_options().parse_args(argv)
    return run(arguments.properties, arguments.override, daemon=arguments.daemon)


if __name__ == "__main__":
    sys.exit(main())
