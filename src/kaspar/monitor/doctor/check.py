"""The declaration of a check: its code and documentation in one place, next to the function that decides."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.monitor.doctor.finding import Fault, Finding, Severity
from kaspar.monitor.doctor.looks import Looks

MOST_FAULTS: Final = 10
"""The maximum number of faults of one check in a report, which stays short even with a thousand lagging groups."""


@dataclass(frozen=True, slots=True)
class Check:
    code: str
    severity: Severity
    title: str
    why: str
    """The consequences."""
    remedy: str
    """How to fix it."""
    function: Callable[[Looks], Iterable[Fault]]

    def findings(self, looks: Looks) -> Iterator[Finding]:
        faults = list(self.function(looks))
        for fault in faults[:MOST_FAULTS]:
            yield self._finding(fault)
        if len(faults) > MOST_FAULTS:
            rest = [fault.resource for fault in faults[MOST_FAULTS:]]
            detail = f"Also affected: {', '.join(rest[:MOST_FAULTS])}{', ...' if len(rest) > MOST_FAULTS else ''}."
            yield self._finding(Fault(f"{len(rest)} more", detail))

    def _finding(self, fault: Fault) -> Finding:
        return Finding(self.code, self.severity, self.title, fault.detail, fault.resource, fault.command, fault.topics)


def check(
    code: str, severity: Severity, *, title: str, why: str, remedy: str
) -> Callable[[Callable[[Looks], Iterable[Fault]]], Check]:
    """A decorator that makes a check from a function that yields faults."""

    def declare(function: Callable[[Looks], Iterable[Fault]]) -> Check:
        return Check(code, severity, title, why, remedy, function)

    return declare
