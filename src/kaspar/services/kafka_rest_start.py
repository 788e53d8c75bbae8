"""kafka-rest-start: runs the REST proxy with the settings of a properties file."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.services.start_command import start, start_options


def command_options() -> argparse.ArgumentParser:
    return start_options("kafka-rest-start", "rest", "the REST proxy")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = command_options().parse_args(argv)
    return start("rest", arguments.properties, arguments.override, daemon=arguments.daemon)


if __name__ == "__main__":
    sys.exit(main())
