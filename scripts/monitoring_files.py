"""What Prometheus and Grafana read, and the page about it, from the declarations in kaspar.monitor.rules."""

import json

from kaspar.cli.yaml_text import yaml_text
from kaspar.monitor.rules.alert import rules_document
from kaspar.monitor.rules.catalogue import GROUPS
from kaspar.monitor.rules.dashboard import dashboard_document
from kaspar.monitor.rules.dashboards import DASHBOARDS
from kaspar.monitor.rules.page import alerts_page

_NOTE = "# Written by scripts/generate_reference.py from src/kaspar/monitor/rules.\n"


def monitoring_files() -> dict[str, str]:
    """The text of each file by its path in the repository."""
    return {
        "deploy/prometheus/kaspar-alerts.yml": _NOTE + yaml_text(rules_document(GROUPS)),
        **{
            f"deploy/grafana/{dashboard.name}.json": json.dumps(dashboard_document(dashboard), indent=2) + "\n"
            for dashboard in DASHBOARDS
        },
        "docs/alerts.md": alerts_page(),
    }
