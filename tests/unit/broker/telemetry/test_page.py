"""What clients have pushed, on the metrics page."""

from kaspar.base.exposition import Kind
from kaspar.broker.metrics.telemetry import pushed_page
from kaspar.broker.telemetry.otlp import Buckets
from kaspar.broker.telemetry.series import ClientSeries, Sample, SeriesName
from tests.unit.broker.broker_view import FakeTelemetry


def page(*clients: ClientSeries) -> list[str]:
    return b"".join(pushed_page(FakeTelemetry(all_clients=list(clients)))).decode().splitlines()


def client(name: str, series: dict[SeriesName, Sample]) -> ClientSeries:
    return ClientSeries(f'client_id="{name}"', series)


def test_a_family_has_the_series_of_all_clients() -> None:
    gauge = SeriesName("kafka_client_a", 'topic="t"')
    other = SeriesName("kafka_client_b", "")
    assert page(
        client("one", {gauge: Sample(Kind.GAUGE, 1.5, "a", False), other: Sample(Kind.COUNTER, 7, "b", True)}),
        client("two", {gauge: Sample(Kind.GAUGE, 2.5, "a", False)}),
    ) == [
        "# HELP kafka_client_a a of clients that push it.",
        "# TYPE kafka_client_a gauge",
        'kafka_client_a{client_id="one",topic="t"} 1.5',
        'kafka_client_a{client_id="two",topic="t"} 2.5',
        "# HELP kafka_client_b b of clients that push it.",
        "# TYPE kafka_client_b counter",
        'kafka_client_b{client_id="one"} 7',
    ]


def test_buckets_of_histograms_are_added_up() -> None:
    name = SeriesName("kafka_client_h", "")
    assert page(client("c", {name: Sample(Kind.HISTOGRAM, Buckets((1.0, 2.5), (4, 5, 6), 70.5), "h", True)}))[1:] == [
        "# TYPE kafka_client_h histogram",
        'kafka_client_h_bucket{client_id="c",le="1.0"} 4',
        'kafka_client_h_bucket{client_id="c",le="2.5"} 9',
        'kafka_client_h_bucket{client_id="c",le="+Inf"} 15',
        'kafka_client_h_sum{client_id="c"} 70.5',
        'kafka_client_h_count{client_id="c"} 15',
    ]


def test_clients_that_disagree_on_a_kind_do_not_break_the_page() -> None:
    name = SeriesName("kafka_client_a", "")
    lines = page(
        client("one", {name: Sample(Kind.GAUGE, 1, "a\nb", False)}),
        client("two", {name: Sample(Kind.HISTOGRAM, Buckets((), (1,), 1.0), "a", True)}),
    )
    assert lines == [
        "# HELP kafka_client_a a\\nb of clients that push it.",
        "# TYPE kafka_client_a gauge",
        'kafka_client_a{client_id="one"} 1',
    ]
