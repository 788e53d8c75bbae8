"""The doctor's findings, with their severity and the command that fixes them."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    PROBLEM = "problem"
    """Something does not work, or records are being lost."""
    WARNING = "warning"
    """It works now, but will fail if nothing is done or something else fails."""
    NOTE = "note"
    """Worth knowing, but no action is needed."""


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    """The code of its check, as in docs/reference/doctor.md."""
    severity: Severity
    title: str
    detail: str
    resource: str
    """The affected resource, such as "topic orders" or "broker 2"."""
    command: str | None
    """A command line that fixes the problem or shows more; None if there is none."""
    topics: tuple[str, ...] = ()
    """Topics named in the detail or the command in addition to the resource. A caller must be allowed to see them to
    see the finding."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault found by a check, whose declaration has the code, severity and title."""

    resource: str
    detail: str
    command: str | None = None
    topics: tuple[str, ...] = ()
