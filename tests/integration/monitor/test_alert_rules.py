"""The rules as promtool sees them: valid, each covered by a fault or by recorded numbers, and those replayed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kaspar.monitor.rules.catalogue import ALERTS
from tests.integration.monitor import (
    test_alerts,
    test_alerts_of_brokers,
    test_alerts_of_clients,
    test_alerts_of_clusters,
)
from tests.integration.monitor.alerting import COVERED, REPOSITORY
from tests.peers.prometheus import promtool

BY_FAULTS = (test_alerts, test_alerts_of_brokers, test_alerts_of_clients, test_alerts_of_clusters)
RULES = REPOSITORY / "deploy/prometheus/kaspar-alerts.yml"
BROKER = 'instance="kafka1:9404"'
DIRECTORY = f'{BROKER},logDirectory="/data"'
GIB = 2**30

RECORDED: dict[str, tuple[Mapping[str, str], str, str]] = {
    # A load that leaves a tenth, which has to last for ten minutes.
    **{
        name: ({f"{metric}{{{BROKER}}}": "0.9x10 0.1x30"}, "20m", "22m")
        for name, metric in (
            ("KasparRequestHandlersBusy", "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"),
            ("KasparNetworkBusy", "kafka_network_socketserver_networkprocessoravgidle_percent"),
        )
    },
    "KasparLogCleanerDead": ({f"kafka_log_logcleaner_deadthreadcount{{{BROKER}}}": "0x10 1x10"}, "9m", "12m"),
    "KasparLogCleanerLate": (
        # Each minute a minute more since the last run: it has not run for 15 minutes from minute 16 on.
        {f"kafka_log_logcleanermanager_time_since_last_run_ms{{{BROKER}}}": "0+60000x60"},
        "15m",
        "22m",
    ),
    "KasparDiskFullSoon": (
        # A tenth of a percent in a minute, from 60 % on: full in ten hours; below half after 100 minutes.
        {
            f"kaspar_log_directory_free_bytes{{{DIRECTORY}}}": f"{600 * GIB}-{GIB}x300",
            f"kaspar_log_directory_total_bytes{{{DIRECTORY}}}": f"{1000 * GIB}x300",
        },
        "1h30m",
        "2h30m",
    ),
}
"""By alert: series of one sample a minute, a time at which it must not fire, and one at which it must. The last one has
a fault that is also made to happen, within seconds; here are the hours."""


def test_rules_and_the_example_are_valid() -> None:
    promtool("check", "rules", str(RULES))
    promtool("check", "config", str(REPOSITORY / "deploy/prometheus/prometheus.yml"))


def test_every_alert_is_covered_by_a_fault_or_by_recorded_numbers() -> None:
    assert BY_FAULTS
    replayed = {name for name, alert in ALERTS.items() if alert.is_replayed}
    assert set(ALERTS) == COVERED | replayed
    assert COVERED.isdisjoint(replayed)
    assert replayed <= RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_numbers_fire_in_time_and_not_before(name: str, tmp_path: Path) -> None:
    series, quiet_at, fires_at = RECORDED[name]
    document: Mapping[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": each, "values": values} for each, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                        "eval_time": at,
                        "exp_samples": [{"labels": "{}", "value": firing}],
                    }
                    for at, firing in ((quiet_at, 0), (fires_at, 1))
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(json.dumps(document))
    promtool("test", "rules", str(tmp_path / "test.yml"))
