"""schema-registry-start: runs the schema registry with the settings of a properties file."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.services.start_command import start, start_options


def command_options() -> argparse.ArgumentParser:
    return start_options("schema-registry-start", "registry", "the schema registry")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = command_options().parse_args(argv)
    return start("registry", arguments.properties, arguments.override, daemon=arguments.daemon)


if __name__ == "__main__":
    sys.exit(main())
