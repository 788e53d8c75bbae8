"""python -m kaspar.services --registry FILE --rest FILE ...: the process that `kaspar up` runs beside the brokers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kaspar.web.catalogue import SERVICES


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kaspar.services", description="Run services in one process.")
    for service in SERVICES.values():
        parser.add_argument(f"--{service.name}", type=Path, metavar="FILE", help=f"the settings of the {service.title}")
    parser.add_argument("--after", type=Path, metavar="FILE", help="start when this file exists")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = options()
    chosen = parser.parse_args(argv)
    files = {name: file for name in SERVICES if (file := getattr(chosen, name)) is not None}
    if not files:
        parser.error(f"name at least one service: {', '.join(f'--{name} FILE' for name in SERVICES)}")
    from kaspar.services.process import run_files

    return run_files(files, after=chosen.after)


if __name__ == "__main__":
    sys.exit(main())
