"""The declaration of a dashboard, and the JSON that Grafana imports (Dashboards, New, Import)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SCHEMA_VERSION: Final = 39
_COLUMNS: Final = 24
_DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    expression: str
    """May contain `$instance`, `$topic` and `$group`, which stand for the selection at the top if the dashboard has
    that variable."""
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    """`timeseries`, or `stat`: one number, with a colour that depends on the threshold."""
    alarm_above: float | None = None
    """A stat is red above this value."""
    alarm_below: float | None = None
    width: int = 8


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    query: str
    """Grafana's `label_values(metric, label)`."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    name: str
    """The name of its file, which is also part of its URL."""
    title: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()

    @property
    def queries(self) -> list[str]:
        return [query.expression for row in self.rows for panel in row.panels for query in panel.queries]


def dashboard_document(dashboard: Dashboard) -> Mapping[str, Any]:
    panels: list[Mapping[str, Any]] = []
    y = 0
    for row in dashboard.rows:
        panels.append(_row(row.title, len(panels) + 1, y))
        placed, height = _placed(row.panels, y + 1)
        panels += [_panel(panel, len(panels) + number, at) for number, (panel, at) in enumerate(placed, 1)]
        y += 1 + height
    return {
        "uid": dashboard.name,
        "title": dashboard.title,
        "tags": ["kaspar", "kafka"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source_variable(), *map(_variable, dashboard.variables)]},
        "panels": panels,
    }


def _placed(panels: Sequence[Panel], y: int) -> tuple[list[tuple[Panel, Mapping[str, int]]], int]:
    """The panels with their positions, from left to right in as many lines as needed, and the total height."""
    placed: list[tuple[Panel, Mapping[str, int]]] = []
    x = used = line = 0
    for panel in panels:
        height = 4 if panel.kind == "stat" else 8
        if x + panel.width > _COLUMNS:
            x, used, line = 0, used + line, 0
        placed.append((panel, {"x": x, "y": y + used, "w": panel.width, "h": height}))
        x, line = x + panel.width, max(line, height)
    return placed, used + line


def _row(title: str, number: int, y: int) -> Mapping[str, Any]:
    position = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": position, "panels": []}


def _panel(panel: Panel, number: int, position: Mapping[str, int]) -> Mapping[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _DATA_SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "thresholds": _thresholds(panel)}, "overrides": []},
        "targets": [
            {
                "refId": chr(65 + index),
                "datasource": _DATA_SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _thresholds(panel: Panel) -> Mapping[str, Any]:
    steps: list[Mapping[str, Any]] = [{"color": "green", "value": None}]
    if panel.alarm_above is not None:
        steps.append({"color": "red", "value": panel.alarm_above})
    if panel.alarm_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": panel.alarm_below}]
    return {"mode": "absolute", "steps": steps}


def _data_source_variable() -> Mapping[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(variable: Variable) -> Mapping[str, Any]:
    return {
        "name": variable.name,
        "type": "query",
        "datasource": _DATA_SOURCE,
        "query": variable.query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
