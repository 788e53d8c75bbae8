"""How a check is declared: its code and its documentation in one place, beside the function that decides."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.monitor.doctor.finding import Fault, Finding, Severity
from kaspar.monitor.doctor.looks import Looks

MOST_FAULTS: Final = 10
"""Of one check in a report: a cluster with a thousand groups behind is still one page."""


@dataclass(frozen=True, slots=True)
class Check:
    code: str
    severity: Severity
    title: str
    why: str
    """What happens if it stays as it is."""
    remedy: str
    """What to do about it."""
    function: Callable[[Looks], Iterable[Fault]]

    def findings(self, looks: Looks) -> Iterator[Finding]:
        faults = list(self.function(looks))
        for fault in faults[:MOST_FAULTS]:
            yield self._finding(fault)
        if len(faults) > MOST_FAULTS:
            rest = [fault.resource for fault in faults[MOST_FAULTS:]]
            detail = (
                f"The same was found for {', '.join(rest[:MOST_FAULTS])}{', ...' if len(rest) > MOST_FAULTS else ''}."
            )
            yield self._finding(Fault(f"{len(rest)} more", detail))

    def _finding(self, fault: Fault) -> Finding:
        return Finding(self.code, self.severity, self.title, fault.detail, fault.resource, fault.command)


def check(
    code: str, severity: Severity, *, title: str, why: str, remedy: str
) -> Callable[[Callable[[Looks], Iterable[Fault]]], Check]:
    """Make a check of a function that yields what is wrong."""

    def declare(function: Callable[[Looks], Iterable[Fault]]) -> Check:
        return Check(code, severity, title, why, remedy, function)

    return declare
