"""The documentation page of alerts, generated from their declarations."""

from collections.abc import Iterator

from kaspar.monitor.rules.alert import Alert
from kaspar.monitor.rules.catalogue import GROUPS
from kaspar.monitor.rules.dashboards import DASHBOARDS

_INTRODUCTION = """# Alerts and dashboards

This page is written by `scripts/generate_reference.py` from the declarations in `src/kaspar/monitor/rules`.

| file | what it is |
|---|---|
| `deploy/prometheus/kaspar-alerts.yml` | the alert rules below, for Prometheus |
| `deploy/prometheus/prometheus.yml` | an example of what to scrape: brokers, the monitor, and probes of services |
| `deploy/prometheus/blackbox.yml` | the probes, for Prometheus' blackbox exporter |
| `deploy/grafana/*.json` | dashboards to import into Grafana |

Rules on groups and on the canary need [the monitor](monitoring.md); those on services and certificates need the
blackbox exporter. With Apache Kafka and the JMX exporter (with its usual rules for Kafka) all rules work that do not
use a metric whose name starts with `kaspar_`. Ranges and times are those that we would start with: change them in a
copy.

Each rule is tested by making its fault happen on running brokers that Prometheus scrapes (`tests/integration/monitor`).
Those whose fault takes hours, a whole machine, or a bug, are tested with recorded numbers (`promtool test rules`), and
say so below.
"""


def alerts_page() -> str:
    return "\n".join([_INTRODUCTION, *_table(), *_sections(), *_dashboards()]) + "\n"


def _table() -> Iterator[str]:
    yield "| alert | severity | after | summary |\n|---|---|---|---|"
    for group in GROUPS:
        for alert in group.alerts:
            yield (
                f"| [{alert.name}](#{alert.name.lower()}) | {alert.severity.value} | {alert.hold} "
                f"| {_plain(alert.summary)} |"
            )


def _sections() -> Iterator[str]:
    for group in GROUPS:
        yield f"\n## {group.title}"
        for alert in group.alerts:
            yield from _section(alert)


def _section(alert: Alert) -> Iterator[str]:
    yield f"\n### {alert.name}\n"
    yield f"{alert.description}\n\n**What to do**: {alert.remedy}\n"
    yield f"    {_plain(alert.command)}\n"
    yield f"Expression, for {alert.hold}:\n\n    {alert.expression}"
    if alert.is_replayed:
        yield "\nTested with recorded numbers."


def _dashboards() -> Iterator[str]:
    yield "\n## Dashboards\n"
    yield "A test checks that every query returns data from a running cluster.\n"
    for dashboard in DASHBOARDS:
        panels = ", ".join(panel.title for row in dashboard.rows for panel in row.panels)
        yield f"- `{dashboard.name}.json`, {dashboard.title}: {panels}"


def _plain(text: str) -> str:
    """The text without Prometheus' templates."""
    for template, word in (
        ("{{ $labels.instance }}", "INSTANCE"),
        ("{{ $labels.consumer_group }}", "GROUP"),
        ("{{ $labels.leader }}", "ID"),
        ("{{ $labels.logDirectory }}", "DIRECTORY"),
    ):
        text = text.replace(template, word)
    while "{{" in text:
        start, _, rest = text.partition("{{")
        text = f"{start}N{rest.partition('}}')[2]}"
    return text
