"""Modules in the folders of a host's programs.

Programs import them as if Python ran them directly: through the program's folder in sys.path. Spark's workers are other
processes, and import the same modules through links in a folder that is on their path.

All programs share one process. Two different modules therefore cannot have the same name, and a module that has changed
on disk requires another process: neither the driver nor running workers import it again.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from kaspar.base.errors import KasparError

MAIN: Final = "__main__"


class ModulesChanged(KasparError):
    """Modules in a program's folder have changed since this process imported them."""


class ModulesBeside:
    """The modules that programs of this process have imported from their folders. Called by one thread at a time."""

    def __init__(self, links: Path) -> None:
        self._links = links
        self._never = {MAIN, *(name for name in sys.modules if "." not in name)}
        """Modules that are never linked: imported before any program ran, such as Kaspar's and Spark's."""
        self._known: dict[str, Path] = {}
        self._imported: dict[Path, tuple[int, int]] = {}
        """Files, with their modification time and size when they were imported."""
        for link in links.iterdir():
            link.unlink()

    def check(self, folder: Path) -> None:
        """Check the modules of a folder before one of its programs runs. Raises ModulesChanged, or KasparError if a
        name is already used by another folder's module."""
        for name, place in self._known.items():
            if place.parent != folder and _has_module(folder, name):
                raise KasparError(
                    f"the module {name} in {folder} has the same name as {place}, which another program has imported. "
                    "Programs of one supervisor share their modules: rename one of them, or run the program under "
                    "its own supervisor with --dir"
                )
        for file, imported in self._imported.items():
            if file.is_relative_to(folder) and _version(file) != imported:
                raise ModulesChanged(f"{file} has changed")

    def publish(self, folder: Path) -> None:
        """Link the modules that a program of this folder has imported, so that workers find them."""
        beside = {name: place for name, module in _top_level() if (place := _place(module, folder)) is not None}
        for name in beside.keys() - self._never - self._known.keys():
            self._known[name] = beside[name]
            (self._links / beside[name].name).symlink_to(beside[name])
        for name, loaded in list(sys.modules.items()):
            if name.partition(".")[0] in self._known and isinstance(file := getattr(loaded, "__file__", None), str):
                self._imported.setdefault(Path(file), _version(Path(file)))


def _has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()


def _top_level() -> list[tuple[str, ModuleType]]:
    return [(name, module) for name, module in list(sys.modules.items()) if "." not in name]


def _place(module: ModuleType, folder: Path) -> Path | None:
    """The file of a module, or the folder of a package, if it is directly in this folder."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return None
    path = Path(file)
    if path.parent == folder:
        return path
    return path.parent if path.name == "__init__.py" and path.parent.parent == folder else None


def _version(file: Path) -> tuple[int, int]:
    try:
        stat = file.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size
