"""The canary's part of the metrics page."""

from kaspar.base.exposition import render
from kaspar.monitor.canary.ledger import Ledger
from kaspar.monitor.canary.metrics import CANARY
from kaspar.monitor.canary.report import CanaryReport, CanaryStatus


def page_of(ledger: Ledger, leaders: dict[int, int]) -> list[str]:
    report = CanaryReport(
        0,
        "t",
        60_000,
        CanaryStatus.OK,
        "",
        ledger.counts(),
        ledger.measured(leaders, 10),
        ledger.report(leaders, 10),
        1,
    )
    return b"".join(render(CANARY, report)).decode().splitlines()


def test_page_has_kafka_monitors_names_and_the_numbers_by_partition() -> None:
    ledger = Ledger(late_ms=5_000, window_ms=60_000)
    partition = ledger.partition(0)
    partition.start(0)
    sequence = partition.begin(0)
    assert sequence is not None
    partition.acknowledge(sequence, 0, 4)
    partition.read(sequence, 0, 10)
    lines = page_of(ledger, {0: 7})
    assert 'kmf_services_produce_service_produce_availability_avg{name="kaspar-canary"} 1.0' in lines
    assert 'kmf_services_consume_service_records_lost_total{name="kaspar-canary"} 0' in lines
    assert 'kaspar_canary_end_to_end_latency_ms{partition="0",leader="7",quantile="0.99"} 10' in lines
    assert 'kaspar_canary_records_produced_total{partition="0"} 1' in lines
    assert "kaspar_canary_status 1" in lines


def test_what_is_unknown_is_absent() -> None:
    lines = page_of(Ledger(late_ms=5_000, window_ms=60_000), {0: 7})
    assert not any(line.startswith("kaspar_canary_produce_availability{") for line in lines)
    assert not any(line.startswith("kmf_services_produce_service_produce_delay_ms_avg{") for line in lines)
