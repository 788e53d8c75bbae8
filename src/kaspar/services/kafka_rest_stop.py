"""kafka-rest-stop: sends SIGTERM to the REST proxy of this machine, which stops cleanly."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.services.stop_command import stop, stop_options


def command_options() -> argparse.ArgumentParser:
    return stop_options("kafka-rest-stop", "the REST proxy")


def main(argv: Sequence[str] | None = None) -> int:
    command_options().parse_args(argv)
    return stop("kafka-rest-stop", "rest", "the REST proxy")


if __name__ == "__main__":
    sys.exit(main())
