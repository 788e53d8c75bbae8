"""The declaration of an alert, and the rules file that Prometheus reads."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

PAGE: Final = "alerts.md"
BROKERS: Final = "kaspar-brokers"
MONITOR: Final = "kaspar-monitor"
PROBES: Final = "kaspar-probes"
"""The jobs of deploy/prometheus/prometheus.yml."""

_RANGE: Final = re.compile(r"\[\d+[smhd]\]")


class Severity(Enum):
    CRITICAL = "critical"
    """Clients are affected, or data is in danger: needs attention now."""
    WARNING = "warning"
    """It will become critical, or indicates a mistake: needs attention within the day."""


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expression: str
    hold: str
    """How long the condition must hold: Prometheus' `for`."""
    severity: Severity
    summary: str
    """One line with the templates `{{ $labels.instance }}` and `{{ $value }}`."""
    description: str
    """What it means."""
    remedy: str
    """What to do."""
    command: str
    """A command that shows more, or fixes the problem."""
    is_replayed: bool = False
    """Whether its test replays recorded numbers, because the fault takes hours, a whole machine, or a bug."""

    @property
    def anchor(self) -> str:
        return f"{PAGE}#{self.name.lower()}"


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    title: str
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Pace:
    """Shorter times for tests."""

    hold: str = "0s"
    window: str = "10s"
    """Replaces every range in expressions."""


def rules_document(groups: Iterable[Group], pace: Pace | None = None) -> Mapping[str, Any]:
    """The rules file as plain values."""
    return {
        "groups": [{"name": group.name, "rules": [_rule(alert, pace) for alert in group.alerts]} for group in groups]
    }


def _rule(alert: Alert, pace: Pace | None) -> Mapping[str, Any]:
    expression = alert.expression if pace is None else _RANGE.sub(f"[{pace.window}]", alert.expression)
    return {
        "alert": alert.name,
        "expr": expression,
        "for": alert.hold if pace is None else pace.hold,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": f"{alert.description} {alert.remedy}",
            "command": alert.command,
            "runbook": f"docs/{alert.anchor}",
        },
    }
