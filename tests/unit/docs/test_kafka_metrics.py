"""The list of Kafka's metrics: complete, and true of what is declared."""

from pathlib import Path

import pytest

from kaspar.base.exposition import Kind
from kaspar.broker.metrics.catalogue import FAMILIES
from kaspar.broker.metrics.families import BrokerFamily, prometheus_name
from scripts.kafka_metrics import ABSENT, DOCUMENTED, families_by_mbean, kafka_metrics_page, normalised, why_absent

MBEANS = Path(__file__).parent.parent.parent / "data" / "kafka-metrics" / "mbeans-4.3.0.txt"
"""Those of a broker of Apache Kafka 4.3.0 that had a producer and a group, read by JMX (tests/peers/jmx.py)."""

OTHER_NAMES = {
    "kafka_network_requestmetrics_totaltimems_max": "it has no attribute Max in the rules, and alerts want it",
    "kafka_network_socketserver_networkprocessoravgidle_percent": "Strimzi's rules",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": "Strimzi's rules",
    "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count": "a meter without PerSec",
}
"""Names besides those of the JMX exporter's rules, and why."""


@pytest.mark.parametrize("mbean", [mbean for mbeans in DOCUMENTED.values() for mbean in mbeans])
def test_a_documented_metric_is_here_or_the_page_says_why_not(mbean: str) -> None:
    assert normalised(mbean) == mbean
    assert (mbean in families_by_mbean()) != (why_absent(mbean) is not None)


def test_every_metric_of_a_running_kafka_is_here_or_the_page_says_why_not() -> None:
    here = families_by_mbean()
    for mbean in MBEANS.read_text().splitlines():
        assert (mbean in here) != (why_absent(mbean) is not None), mbean


def test_no_reason_is_given_for_what_is_here() -> None:
    assert [mbean for mbean in families_by_mbean() if why_absent(mbean)] == []


def test_every_reason_is_needed() -> None:
    known = {*MBEANS.read_text().splitlines(), *(mbean for mbeans in DOCUMENTED.values() for mbean in mbeans)}
    for reason in ABSENT:
        assert any(why_absent(mbean) == reason for mbean in known), reason


@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if ",name=" in family.kafka_name], ids=lambda family: family.name
)
def test_names_are_those_of_the_jmx_exporters_rules(family: BrokerFamily) -> None:
    name, kind = prometheus_name(family.kafka_name)
    if family.name in OTHER_NAMES:
        assert family.name != name
    else:
        assert family.name == name
        assert family.kind in (kind, Kind.SUMMARY)


def test_the_page_lists_every_documented_metric_once() -> None:
    rows = [line.split("`")[1] for line in kafka_metrics_page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(set(rows))
    assert {mbean for mbeans in DOCUMENTED.values() for mbean in mbeans} <= set(rows)
