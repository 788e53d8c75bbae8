"""The files in deploy/ and the page about alerts, as the declarations give them."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from kaspar.monitor.rules.alert import BROKERS, MONITOR, PROBES, Alert, Pace, rules_document
from kaspar.monitor.rules.catalogue import ALERTS, GROUPS
from kaspar.monitor.rules.dashboard import dashboard_document
from kaspar.monitor.rules.dashboards import DASHBOARDS
from scripts.monitoring_files import monitoring_files

REPOSITORY: Final = Path(__file__).parents[4]
FILES: Final = monitoring_files()
PROGRAMS: Final = {path.stem for path in (REPOSITORY / "docs/reference/commands").glob("*.md")}


@pytest.mark.parametrize("name", FILES)
def test_generated_file_is_current(name: str) -> None:
    assert (REPOSITORY / name).read_text() == FILES[name], "run: make generate"


def test_deploy_has_no_dashboard_that_is_not_declared() -> None:
    found = {path.stem for path in (REPOSITORY / "deploy/grafana").glob("*.json")}
    assert found == {dashboard.name for dashboard in DASHBOARDS}


def test_rules_file_is_the_document_in_yaml() -> None:
    text = FILES["deploy/prometheus/kaspar-alerts.yml"]
    assert yaml.safe_load(text) == rules_document(GROUPS)


def test_example_has_the_jobs_that_rules_name() -> None:
    example = yaml.safe_load((REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())
    assert {job["job_name"] for job in example["scrape_configs"]} == {BROKERS, MONITOR, PROBES}
    modules = yaml.safe_load((REPOSITORY / "deploy/prometheus/blackbox.yml").read_text())["modules"]
    (probed,) = [job for job in example["scrape_configs"] if job["job_name"] == PROBES]
    assert {entry["labels"]["module"] for entry in probed["static_configs"]} == set(modules)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda alert: alert.name)
def test_alert_names_a_command_that_exists(alert: Alert) -> None:
    words = alert.command.split()
    program = "-".join(words[:2]) if words[0] == "kaspar" else words[0]
    assert program in PROGRAMS | {"timedatectl"}
    assert f"### {alert.name}\n" in FILES["docs/alerts.md"]


def test_pace_shortens_ranges_and_times_and_nothing_else() -> None:
    usual, short = (
        {rule["alert"]: rule for group in rules_document(GROUPS, pace)["groups"] for rule in group["rules"]}
        for pace in (None, Pace(hold="1s", window="7s"))
    )
    soon = short["KasparDiskFullSoon"]
    assert soon["for"] == "1s"
    assert soon["expr"] == usual["KasparDiskFullSoon"]["expr"].replace("[1h]", "[7s]")
    assert "24 * 3600" in soon["expr"]


def test_panels_of_a_dashboard_do_not_overlap_and_have_ids_of_their_own() -> None:
    for dashboard in DASHBOARDS:
        panels = dashboard_document(dashboard)["panels"]
        cells = [
            (x, y)
            for panel in panels
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells)), dashboard.name
        assert max(x for x, _ in cells) < 24
        assert len({panel["id"] for panel in panels}) == len(panels)
