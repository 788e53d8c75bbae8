"""The events of the examples: the same for the same seed, in the order of arrival, and as lively as they claim."""

import json
from itertools import islice, pairwise

import pytest

from examples.streams.generators import lines, log_lines, purchases, readings
from kaspar.demo.events import Event, Generator, clicks, trades

START_MS = 1_700_000_000_000
EVERY = [lines, trades, clicks, purchases, readings, log_lines]


def some(generator: Generator, count: int = 3000, *, seed: int = 1, rate: float = 50.0) -> list[Event]:
    return list(islice(generator(seed, START_MS, rate), count))


@pytest.mark.parametrize("generator", EVERY)
class TestEvery:
    def test_events_follow_from_the_seed(self, generator: Generator) -> None:
        assert some(generator) == some(generator)
        assert some(generator) != some(generator, seed=2)

    def test_events_are_in_the_order_of_arrival(self, generator: Generator) -> None:
        times = [timestamp for *_, timestamp in some(generator)]
        assert times == sorted(times)
        assert times[0] >= START_MS

    def test_the_rate_holds_on_average(self, generator: Generator) -> None:
        slow, fast = some(generator, rate=50.0), some(generator, rate=500.0)
        assert 30_000 < slow[-1][3] - START_MS < 90_000
        assert fast[-1][3] - START_MS < (slow[-1][3] - START_MS) / 3


def test_news_moves_the_price_of_a_stock() -> None:
    """Without news an ask changes by a per mille or so."""
    last: dict[str | None, float] = {}
    changes = []
    for _, symbol, value, _ in some(trades):
        ask = json.loads(value or "")["ask"]
        changes.append(abs(ask / last.get(symbol, ask) - 1))
        last[symbol] = ask
    assert sorted(changes)[len(changes) // 4] < 0.001
    assert max(changes) > 0.01


def test_prices_move_as_far_in_a_second_at_any_rate() -> None:
    def typical_change(rate: float) -> float:
        last: dict[str | None, list[float]] = {}
        for _, symbol, value, timestamp in some(trades, int(rate * 60), rate=rate):
            seconds = last.setdefault(symbol, [])
            if len(seconds) <= (timestamp - START_MS) // 1000:
                seconds.append(json.loads(value or "")["ask"])
        changes = [abs(later / sooner - 1) for asks in last.values() for sooner, later in pairwise(asks)]
        return sum(changes) / len(changes)

    assert 0.5 < typical_change(50.0) / typical_change(1000.0) < 2


def test_a_user_clicks_as_often_at_any_rate() -> None:
    users = [len({key for topic, key, *_ in some(clicks, rate=rate) if topic == "profiles"}) for rate in (50.0, 250.0)]
    assert users == [180, 900]


def test_profiles_come_before_everything_else_but_some_users_have_none() -> None:
    events = some(clicks)
    with_profile = {key for topic, key, *_ in events[:180] if topic == "profiles"}
    users = {key for topic, key, *_ in events if topic == "page-views"}
    assert len(with_profile) == 180
    assert len(users - with_profile) == 20
    assert any(topic == "profiles" for topic, *_ in events[180:])


def test_readings_arrive_out_of_order_and_some_much_too_late() -> None:
    delays, measured = [], []
    for *_, value, arrived in some(readings):
        measured.append(json.loads(value or "")["at"])
        delays.append(arrived - measured[-1])
    assert min(delays) >= 0
    assert measured != sorted(measured)
    assert sum(delay < 1500 for delay in delays) > len(delays) / 2
    assert max(delays) > 10_000
