"""What the commands of `kaspar pipeline` have in common."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder


def add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dir",
        type=Path,
        metavar="FOLDER",
        help="folder of the supervisor (default: kaspar/pipelines in $XDG_STATE_HOME or ~/.local/state)",
    )


def folder_of(arguments: argparse.Namespace) -> "Folder":
    from kaspar.pipelines.folder import Folder, default_folder

    return Folder(arguments.dir or default_folder())
