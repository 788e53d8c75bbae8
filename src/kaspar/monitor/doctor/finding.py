"""What the doctor reports: a finding, with its severity and the command that mends it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    PROBLEM = "problem"
    """Something does not work, or records are being lost."""
    WARNING = "warning"
    """It works, and will not if nothing is done, or if one more thing fails."""
    NOTE = "note"
    """Worth knowing; nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    """Of its check, as in docs/reference/doctor.md."""
    severity: Severity
    title: str
    detail: str
    resource: str
    """What it is about, as in "topic orders" or "broker 2"."""
    command: str | None
    """A command line that mends it, or shows where to look; None if no command does."""
    topics: tuple[str, ...] = ()
    """Those that the detail or the command names, beside the resource: only who may see them may see the finding."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check has found; its code, severity and title come from the declaration of the check."""

    resource: str
    detail: str
    command: str | None = None
    topics: tuple[str, ...] = ()
