"""The example programs, run by the test driver on generated events, against the same results calculated plainly."""

import json
import re
from collections import Counter, defaultdict
from itertools import islice
from typing import Any

import pytest

from examples.streams import generators, log_filter, sensors, top_ten, word_count
from kaspar.demo import click_enrichment, stock_statistics
from kaspar.demo import events as demo_events
from kaspar.demo.events import Event, Generator
from kaspar.streams import Topology, TopologyTestDriver, serdes
from kaspar.streams.windows import Window, Windowed

START_MS = 1_700_000_000_000


def events(generator: Generator, count: int = 2000) -> list[Event]:
    return list(islice(generator(7, START_MS, 50.0), count))


def driver_after(topology: Topology, given: list[Event]) -> TopologyTestDriver:
    driver = TopologyTestDriver(topology)
    for topic, key, value, timestamp in given:
        driver.pipe(topic, None if key is None else key.encode(), (value or "").encode(), timestamp)
    return driver


def windowed_results(driver: TopologyTestDriver, topic: str, size_ms: int) -> list[tuple[Windowed[str], Any]]:
    output = driver.create_output_topic(topic, serdes.windowed(serdes.text(), size_ms), serdes.json())
    return output.read_key_values_to_list()


def test_words_are_counted() -> None:
    given = events(generators.lines)
    with driver_after(word_count.topology(), given) as driver:
        counts = driver.create_output_topic("word-counts", value_serde=serdes.long()).read_key_values_to_map()
    assert counts == Counter(word for *_, line, _ in given for word in re.findall(r"\w+", (line or "").lower()))


def test_trades_are_summarised_in_five_second_windows_every_second() -> None:
    given = events(demo_events.trades)
    with driver_after(stock_statistics.topology(), given) as driver:
        results = dict(windowed_results(driver, "stock-statistics", 5000))
    asks: dict[Windowed[str], list[float]] = defaultdict(list)
    for _, symbol, value, timestamp in given:
        for second in range(5):
            start = timestamp // 1000 * 1000 - second * 1000
            asks[Windowed(symbol or "", Window(start, start + 5000))].append(json.loads(value or "")["ask"])
    assert results.keys() == asks.keys()
    for key, result in results.items():
        assert result["trades"] == len(asks[key])
        assert result["lowest_ask"] == min(asks[key])
        assert result["average_ask"] == pytest.approx(sum(asks[key]) / len(asks[key]))


def test_views_are_joined_with_profiles_and_earlier_searches() -> None:
    given = events(demo_events.clicks)
    with driver_after(click_enrichment.topology(), given) as driver:
        output = driver.create_output_topic("enriched-views", value_serde=serdes.json())
        written = output.read_key_values_to_list()
    profiles: dict[str | None, Any] = {}
    searches: dict[str | None, list[tuple[int, str]]] = defaultdict(list)
    expected: list[tuple[str | None, Any]] = []
    for topic, user, text, at in given:
        value = json.loads(text or "")
        if topic == "profiles":
            profiles[user] = value
        elif topic == "searches":
            searches[user].append((at, value["terms"]))
        else:
            known = profiles.get(user, {})
            view = {"page": value["page"], "name": known.get("name"), "city": known.get("city")}
            found: list[str | None] = [terms for searched_at, terms in searches[user] if at - 5000 <= searched_at]
            expected += [(user, {**view, "searched_for": terms}) for terms in found or [None]]
    # Views without a search wait until it is certain that there is none: the last ones still do.
    missing = Counter(map(str, expected)) - Counter(map(str, written))
    assert not Counter(map(str, written)) - Counter(map(str, expected))
    assert missing.total() < 10
    assert all("'searched_for': None" in view for view in missing)


def test_the_ten_best_products_of_each_category() -> None:
    given = events(generators.purchases)
    with driver_after(top_ten.topology(), given) as driver:
        best = driver.create_output_topic("top-ten", value_serde=serdes.json()).read_key_values_to_map()
    sold: dict[str, Counter[str]] = defaultdict(Counter)
    for *_, value, _ in given:
        purchase = json.loads(value or "")
        sold[purchase["category"]][purchase["product"]] += purchase["quantity"]
    assert best == {
        category: [
            {"product": product, "sold": count}
            for product, count in sorted(products.items(), key=lambda entry: (-entry[1], entry[0]))[:10]
        ]
        for category, products in sold.items()
    }


def test_windows_of_readings_are_final_and_written_once() -> None:
    given = events(generators.readings)
    with driver_after(sensors.topology(), given) as driver:
        results = windowed_results(driver, "room-temperatures", 10_000)
        dropped = driver.dropped
    stream_time, too_late = 0, 0
    accepted: dict[Windowed[str], list[float]] = defaultdict(list)
    for _, room, text, _ in given:
        reading = json.loads(text or "")
        stream_time = max(stream_time, reading["at"])
        start = reading["at"] // 10_000 * 10_000
        if start + 15_000 > stream_time:
            accepted[Windowed(room or "", Window(start, start + 10_000))].append(reading["celsius"])
        else:
            too_late += 1
    expected = {
        key: {"readings": len(found), "lowest": min(found), "highest": max(found)}
        for key, found in accepted.items()
        if key.window.end + 5000 <= stream_time
    }
    assert dict(results) == expected
    assert len(results) == len(expected)
    assert too_late > 0
    assert dropped.total() == too_late


def test_errors_and_warnings_of_a_log_are_divided() -> None:
    given = events(generators.log_lines)
    with driver_after(log_filter.topology(), given) as driver:
        written = {
            level: driver.create_output_topic(topic, value_serde=serdes.json()).read_key_values_to_list()
            for level, topic in (("ERROR", "log-errors"), ("WARN", "log-warnings"))
        }
    for level, entries in written.items():
        lines = [(host, line.split(" ", 2)) for _, host, line, _ in given if line and line.startswith(level)]
        assert entries == [
            (host, {"level": level, "service": service, "message": message}) for host, (_, service, message) in lines
        ]
        assert lines
