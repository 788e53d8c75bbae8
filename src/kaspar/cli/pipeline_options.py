"""The options that the commands of `kaspar pipeline` share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder

R = TypeVar("R")


def folder_option(function: Callable[..., R]) -> Callable[..., R]:
    return click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        callback=lambda context, parameter, path: _folder(path),
        help="Folder of the supervisor (default: kaspar/pipelines in $XDG_STATE_HOME or ~/.local/state).",
    )(function)


def _folder(path: Path | None) -> "Folder":
    from kaspar.pipelines.folder import Folder, default_folder

    return Folder(path or default_folder())
