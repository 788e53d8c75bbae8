"""What the doctor reports: a finding, with its severity and the command that fixes it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    PROBLEM = "problem"
    """Something does not work, or records are being lost."""
    WARNING = "warning"
    """It works now, but will fail if nothing is done or if one more thing fails."""
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
    """A command line that fixes it or shows more; None if there is none."""
    topics: tuple[str, ...] = ()
    """Topics named in the detail or the command besides the resource: a caller needs to see them to see the finding."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check has found; its code, severity and title come from the declaration of the check."""

    resource: str
    detail: str
    command: str | None = None
    topics: tuple[str, ...] = ()
