"""Looks at a real cluster as `kaspar doctor` does, and runs the commands of its findings."""

import os
import subprocess
from collections.abc import Callable

from kaspar.client.admin.session import Admin
from kaspar.monitor.doctor import Access, Doctor, Finding, Severity, findings
from kaspar.monitor.doctor.observation import Observation
from tests.integration.commands import PROGRAMS

_SECONDS = 60.0


def examine(admin: Admin, servers: str) -> list[Finding]:
    """What one look finds."""
    return list(findings([Doctor(Access(servers)).look(admin)]))


def found(admin: Admin, servers: str, code: str, resource: str | None = None) -> list[Finding]:
    return [each for each in examine(admin, servers) if each.code == code and resource in (None, each.resource)]


def the_only(found: list[Finding]) -> Finding:
    (finding,) = found
    return finding


def run(finding: Finding) -> None:
    """Its command, as a person would run it in a shell."""
    assert finding.command is not None
    environment = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", finding.command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, f"{finding.command}\n{done.stdout}{done.stderr}"


def worrying(seen: list[Finding]) -> list[Finding]:
    """Problems and warnings."""
    return [each for each in seen if each.severity is not Severity.NOTE]


class SteppedClock:
    """Each look is ten seconds after the one before, however soon it follows."""

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms

    def __call__(self) -> int:
        return self.now_ms


def looks(admin: Admin, servers: str, between: Callable[[], None], start_ms: int, count: int = 4) -> list[Observation]:
    clock = SteppedClock(start_ms)
    doctor = Doctor(Access(servers), now_ms=clock)
    seen = []
    for _ in range(count):
        seen.append(doctor.look(admin))
        between()
        clock.now_ms += 10_000
    return seen
