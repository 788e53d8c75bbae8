"""The result of a decision, and checks of the mode."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from kaspar.registry.errors import not_permitted
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import qualified
from kaspar.registry.records import Mode
from kaspar.registry.state import State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    records: tuple[LogRecord, ...]
    """The records to write in one transaction; empty if nothing changes."""
    reply: T


def is_read_only(mode: Mode) -> bool:
    return mode in ("READONLY", "READONLY_OVERRIDE")


def is_import(mode: Mode) -> bool:
    return mode in ("IMPORT", "FORWARD")


def check_writable(state: State, subject: str | None) -> None:
    if is_read_only(state.mode_in_scope(subject)):
        raise not_permitted(f"Subject {place_of(subject)} is in read-only mode")


def place_of(subject: str | None) -> str:
    """The subject in error messages as Java writes it: the registry itself is `null`."""
    context = "" if subject is None else qualified(subject).context_prefix
    return f"{'null' if subject is None else subject} in context {context}"
