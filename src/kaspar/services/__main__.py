"""python -m kaspar.services --registry FILE --rest FILE: what `kaspar up` runs beside the brokers."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kaspar.services", description="Run services in one process.")
    parser.add_argument("--registry", type=Path, metavar="FILE", help="the settings of the schema registry")
    parser.add_argument("--rest", type=Path, metavar="FILE", help="the settings of the REST proxy")
    parser.add_argument("--after", type=Path, metavar="FILE", help="start when this file exists")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = options()
    chosen = parser.parse_args(argv)
    files = {name: file for name in ("registry", "rest") if (file := getattr(chosen, name)) is not None}
    if not files:
        parser.error("which service? --registry FILE, --rest FILE, or both")
    from kaspar.services.process import run_files

    return run_files(files, after=chosen.after)


if __name__ == "__main__":
    sys.exit(main())
