"""What clients have pushed, on the metrics page."""

from kaspar.broker.metrics.telemetry import pushed_page
from kaspar.broker.telemetry.otlp import Buckets, PointKind
from kaspar.broker.telemetry.series import ClientSeries, Series, series_key
from tests.unit.broker.broker_view import FakeTelemetry

A, B = "kafka_client_a", "kafka_client_b"


def page(**clients: Series) -> list[str]:
    pushed = [ClientSeries(f'client_id="{name}"', series) for name, series in clients.items()]
    return b"".join(pushed_page(FakeTelemetry(all_clients=pushed))).decode().splitlines()


def test_a_family_has_the_series_of_all_clients() -> None:
    gauge, counter = series_key(PointKind.GAUGE, A, 'topic="{t}"'), series_key(PointKind.COUNTER, B, "")
    assert page(one={gauge: 1.5, counter: 7}, two={gauge: 2.5}) == [
        "# HELP kafka_client_a Pushed by clients (KIP-714).",
        "# TYPE kafka_client_a gauge",
        'kafka_client_a{client_id="one",topic="{t}"} 1.5',
        'kafka_client_a{client_id="two",topic="{t}"} 2.5',
        "# HELP kafka_client_b Pushed by clients (KIP-714).",
        "# TYPE kafka_client_b counter",
        'kafka_client_b{client_id="one"} 7',
    ]


def test_buckets_of_histograms_are_added_up() -> None:
    assert page(c={series_key(PointKind.HISTOGRAM, A, ""): Buckets((1.0, 2.5), (4, 5, 6), 70.5)})[1:] == [
        "# TYPE kafka_client_a histogram",
        'kafka_client_a_bucket{client_id="c",le="1.0"} 4',
        'kafka_client_a_bucket{client_id="c",le="2.5"} 9',
        'kafka_client_a_bucket{client_id="c",le="+Inf"} 15',
        'kafka_client_a_sum{client_id="c"} 70.5',
        'kafka_client_a_count{client_id="c"} 15',
    ]


def test_clients_that_disagree_on_a_kind_do_not_break_the_page() -> None:
    gauge, histogram = series_key(PointKind.GAUGE, A, ""), series_key(PointKind.HISTOGRAM, A, "")
    assert page(one={gauge: 1}, two={histogram: Buckets((), (1,), 1.0)}) == [
        "# HELP kafka_client_a Pushed by clients (KIP-714).",
        "# TYPE kafka_client_a gauge",
        'kafka_client_a{client_id="one"} 1',
    ]


def test_only_the_families_that_are_asked_for_are_shown() -> None:
    histogram, gauge = series_key(PointKind.HISTOGRAM, A, ""), series_key(PointKind.GAUGE, B, "")
    telemetry = FakeTelemetry(
        all_clients=[ClientSeries('client_id="c"', {histogram: Buckets((), (1,), 1.0), gauge: 2})]
    )
    assert b"".join(pushed_page(telemetry, ["kaspar_info"])) == b""
    assert b"# TYPE kafka_client_a" not in b"".join(pushed_page(telemetry, [B]))
    assert b"# TYPE kafka_client_b" not in b"".join(pushed_page(telemetry, [f"{A}_bucket"]))
    assert b"kafka_client_a_count" in b"".join(pushed_page(telemetry, [f"{A}_bucket"]))
