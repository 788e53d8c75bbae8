"""The page of the doctor's checks, made of their declarations."""

from kaspar.monitor.doctor.checks import ALL_CHECKS
from kaspar.monitor.doctor.finding import Severity

_INTRODUCTION = """# What the doctor checks

This page is written by `scripts/generate_reference.py` from the declarations in `src/kaspar/monitor/doctor/checks`.

[`kaspar doctor`](../doctor.md) and the monitor report these, by their codes.
"""
_HEADINGS = {Severity.PROBLEM: "Problems", Severity.WARNING: "Warnings", Severity.NOTE: "Notes"}


def doctor_page() -> str:
    parts = [_INTRODUCTION]
    for severity, heading in _HEADINGS.items():
        parts.append(f"## {heading}\n")
        parts += [
            f"### `{check.code}`\n\n{check.title}. {check.why}\n\n*{check.remedy}*\n"
            for check in ALL_CHECKS
            if check.severity is severity
        ]
    return "\n".join(parts)
