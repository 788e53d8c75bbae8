"""Profiles: named connection settings of clusters.

A profile is a file of Java client properties, so it can also be used as `--command-config` of Kafka's commands. It may
contain passwords, so only its owner can read it.
"""

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.cli.failures import NotFound

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_SUFFIX: Final = ".properties"
_CURRENT: Final = "current"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_SECRET: Final = re.compile(r"password|secret|jaas|\.key$|token")
_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kaspar" / "profiles"


@dataclass(frozen=True, slots=True)
class Profiles:
    folder: Path

    def names(self) -> list[str]:
        return sorted(file.stem for file in self.folder.glob(f"*{_SUFFIX}"))

    def file(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise KasparError(f"invalid profile name {name!r}: use letters, digits, '.', '_' and '-'")
        return self.folder / f"{name}{_SUFFIX}"

    def existing(self, name: str) -> Path:
        file = self.file(name)
        if not file.exists():
            there = ", ".join(self.names())
            advice = f"profiles: {there}" if there else "'kaspar profile create' creates one"
            raise NotFound(f"there is no profile {name} ({advice})")
        return file

    def current(self) -> str | None:
        """The profile used by commands without --profile; None if there is none."""
        with contextlib.suppress(OSError):
            name = (self.folder / _CURRENT).read_text(encoding="utf-8").strip()
            if name and self.file(name).exists():
                return name
        return None

    def use(self, name: str | None) -> None:
        if name is None:
            (self.folder / _CURRENT).unlink(missing_ok=True)
        else:
            self.existing(name)
            _write_private(self.folder / _CURRENT, f"{name}\n")

    def read(self, name: str) -> dict[str, str]:
        return read_properties_file(self.existing(name))

    def write(self, name: str, properties: Mapping[str, str]) -> Path:
        file = self.file(name)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_private(file, properties_text(properties))
        return file

    def delete(self, name: str) -> None:
        file = self.existing(name)
        if self.current() == name:
            self.use(None)
        file.unlink()


def read_properties_file(file: Path) -> dict[str, str]:
    """Read a properties file. Raises InvalidSetting with a message for users."""
    from kaspar.config import load_settings  # imported here because most commands run without a file

    return load_settings(file)


def properties_text(properties: Mapping[str, str]) -> str:
    return "".join(f"{_escaped(name, is_name=True)}={_escaped(value)}\n" for name, value in properties.items())


def is_secret(name: str) -> bool:
    """Whether the value of a property must be masked on the screen."""
    return _SECRET.search(name) is not None


def _escaped(text: str, *, is_name: bool = False) -> str:
    escaped = "".join(_ESCAPES.get(each, each) for each in text)
    if is_name:
        return re.sub(r"([=: #!])", r"\\\1", escaped)
    return f"\\{escaped}" if escaped[:1] == " " else escaped


def _write_private(file: Path, text: str) -> None:
    """Replace the file atomically. Only its owner can read it at any time."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    new.replace(file)
