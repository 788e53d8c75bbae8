"""schema-registry-stop: sends SIGTERM to the schema registry of this machine, which stops cleanly."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.services.stop_command import stop, stop_options


def command_options() -> argparse.ArgumentParser:
    return stop_options("schema-registry-stop", "the schema registry")


def main(argv: Sequence[str] | None = None) -> int:
    command_options().parse_args(argv)
    return stop("schema-registry-stop", "registry", "the schema registry")


if __name__ == "__main__":
    sys.exit(main())
