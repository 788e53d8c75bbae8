"""From what a client pushes to Prometheus' series: names, labels, sums, and what there is no room for."""

import uuid
from collections.abc import Mapping

from kaspar.broker.telemetry.otlp import Buckets, Point, PointKind
from kaspar.broker.telemetry.series import MAX_BUCKETS, Series, client_labels, series_key, split_key, updated
from kaspar.broker.telemetry.subscriptions import ClientAttributes


def point(
    name: str,
    value: float | Buckets = 1.0,
    kind: PointKind = PointKind.GAUGE,
    *,
    is_delta: bool = False,
    attributes: Mapping[str, str] | None = None,
) -> Point:
    return Point(name, kind, is_delta, tuple((attributes or {}).items()), value)


def counted(name: str, value: float, *, is_delta: bool = True) -> Point:
    return point(name, value, PointKind.COUNTER, is_delta=is_delta)


def shown(series: Series) -> dict[str, object]:
    names = {key: split_key(key) for key in series}
    return {f"{names[key][1]}{{{names[key][2]}}}": value for key, value in series.items()}


def test_names_and_labels() -> None:
    series = updated(
        {},
        [
            point("org.apache.kafka.producer.node.request.latency.avg", 2.5, attributes={"node_id": "1"}),
            point("my.app/queue-size", 3),
            counted("org.apache.kafka.consumer.records.consumed.total", 4),
            counted("requests", 5),
            point("x", 1, attributes={"client_id": "someone else", "a.b": 'q"\n', "9": "n", "__name__": "y"}),
        ],
        100,
    ).series
    assert shown(series) == {
        'kafka_client_producer_node_request_latency_avg{node_id="1"}': 2.5,
        "kafka_client_my_app_queue_size{}": 3,
        "kafka_client_consumer_records_consumed_total{}": 4,
        "kafka_client_requests_total{}": 5,
        'kafka_client_x{a_b="q\\"\\n",exported_9="n",exported_client_id="someone else",name__="y"}': 1,
    }
    assert series[series_key(PointKind.COUNTER, "kafka_client_requests_total", "")] == 5


def test_deltas_are_added_up_and_totals_replace_each_other() -> None:
    first = updated({}, [counted("a", 3), counted("b", 3, is_delta=False)], 9).series
    second = updated(first, [counted("a", 4), counted("b", 4, is_delta=False)], 9).series
    assert shown(second) == {"kafka_client_a_total{}": 7, "kafka_client_b_total{}": 4}
    assert shown(first) == {"kafka_client_a_total{}": 3, "kafka_client_b_total{}": 3}, "a page may be reading it"


def test_histograms_are_added_up_until_their_bounds_change() -> None:
    def pushed(before: Series, *bounds: float) -> Series:
        value = Buckets(bounds, (1, 2), 5.0)
        return updated(before, [point("h", value, PointKind.HISTOGRAM, is_delta=True)], 9).series

    once = pushed({}, 1.0)
    assert shown(pushed(once, 1.0)) == {"kafka_client_h{}": Buckets((1.0,), (2, 4), 10.0)}
    assert shown(pushed(once, 2.0)) == {"kafka_client_h{}": Buckets((2.0,), (1, 2), 5.0)}


def test_gauges_that_are_not_pushed_any_longer_are_gone_and_counters_stay() -> None:
    first = updated({}, [point("gauge"), counted("counter", 1)], 9).series
    assert shown(updated(first, [point("other")], 9).series) == {
        "kafka_client_counter_total{}": 1,
        "kafka_client_other{}": 1.0,
    }


def test_what_there_is_no_room_for_is_left_out() -> None:
    points = [counted(f"m{number}", 1) for number in range(10)]
    first = updated({}, points, 4)
    assert (len(first.series), first.left_out) == (4, 6)
    second = updated(first.series, points, 4)
    assert (len(second.series), second.left_out) == (4, 6)
    assert set(shown(second.series).values()) == {2}


def test_what_cannot_be_shown_is_left_out() -> None:
    many = Buckets(tuple(map(float, range(MAX_BUCKETS))), (1,) * (MAX_BUCKETS + 1), 1.0)
    points = [
        counted("a", -1),
        counted("a", float("nan")),
        counted("a", float("inf")),
        point("n" * 300),
        point("a", attributes={f"label{number}": "x" * 100 for number in range(20)}),
        point("h", many, PointKind.HISTOGRAM),
    ]
    result = updated({}, points, 100)
    assert (len(result.series), result.left_out) == (0, len(points))


def test_labels_of_a_client_are_short_and_escaped() -> None:
    client = ClientAttributes(uuid.UUID(int=2), 'c"' * 500, "java", "4.3.0", "127.0.0.1", "1", "User:alice")
    text = client_labels(client)
    assert text.startswith('client_id="c\\"')
    assert len(text) < 600
    assert text.endswith('client_software_name="java",client_software_version="4.3.0",principal="User:alice"')
