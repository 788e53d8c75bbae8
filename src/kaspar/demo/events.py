"""Endless generators of the demo's events, and the parts that they are built from. The same seed gives the same events.

A generator yields (topic, key, value, timestamp in milliseconds) in the order of arrival, `rate` events a second on
average. Keys and values are text; values are JSON except for plain lines. Nothing here uses a broker or a clock.
"""

import heapq
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Event = tuple[str, str | None, str | None, int]
Generator = Callable[[int, int, float], Iterator[Event]]
"""Takes a seed, the start time in milliseconds, and a rate."""


def arrivals(rng: random.Random, start_ms: int, rate: float) -> Iterator[int]:
    """Random arrival times of independent events, in milliseconds."""
    at = float(start_ms)
    while True:
        at += rng.expovariate(rate) * 1000
        yield int(at)


def by_arrival(steps: Iterable[tuple[int, list[Event]]]) -> Iterator[Event]:
    """Yields the events of all steps, ordered by timestamp. A step has a time, and events of that time or later."""
    under_way: list[tuple[int, int, Event]] = []
    for number, (now, events) in enumerate(steps):
        for event in events:
            heapq.heappush(under_way, (event[3], number, event))
        while under_way and under_way[0][0] <= now:
            yield heapq.heappop(under_way)[2]


def with_mistakes(events: Iterable[Event], topic: str, *, seed: int, share: float) -> Iterator[Event]:
    """Truncates the values of a share of one topic's events, so that they cannot be parsed."""
    rng = random.Random(seed)
    for event in events:
        if event[0] == topic and event[2] is not None and rng.random() < share:
            yield event[0], event[1], event[2][: len(event[2]) // 2], event[3]
        else:
            yield event


def text_of(**fields: Any) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


# --- trades -----------------------------------------------------------------------------------------------------------

_PRICES = {"ACME": 120.0, "GLOBEX": 48.0, "INITECH": 15.5, "HOOLI": 310.0, "UMBRELLA": 77.0, "STARK": 205.0}
_SECONDS_BETWEEN_NEWS = 4
_NEWS_LASTS_MS = 3000
_CHANGE_IN_A_SECOND = 0.007
_CHANGE_WITH_NEWS = 0.07


def trades(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Trades whose asks follow a random walk with the same change per second at any rate. Now and then there is news
    about a stock, which is then traded most and moves most."""
    rng = random.Random(seed)
    quiet, excited = (change / math.sqrt(rate) for change in (_CHANGE_IN_A_SECOND, _CHANGE_WITH_NEWS))
    prices, in_the_news, news_until = dict(_PRICES), "", start_ms
    for at in arrivals(rng, start_ms, rate):
        if rng.random() * _SECONDS_BETWEEN_NEWS * rate < 1:
            in_the_news, news_until = rng.choice(list(prices)), at + _NEWS_LASTS_MS
        is_news = at < news_until and rng.random() < 0.7
        symbol = in_the_news if is_news else rng.choice(list(prices))
        prices[symbol] = max(0.5, prices[symbol] * (1 + rng.gauss(0, excited if is_news else quiet)))
        yield "trades", symbol, text_of(ask=round(prices[symbol], 2), size=100 * rng.randint(1, 20)), at


# --- clicks -----------------------------------------------------------------------------------------------------------

_NAMES = ("Ada", "Björn", "Chidi", "Dilara", "Emeka", "Fatou", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lena")
_CITIES = ("Berlin", "Lagos", "Osaka", "Recife", "Uppsala", "Pune")
_SUBJECTS = ("surfing", "chess", "gardening", "cycling", "baking", "astronomy")
_USERS_PER_RATE = 4  # so that each of them clicks equally often at any rate
_WITH_PROFILE = 0.9


def clicks(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Users search, look at a page about it a moment later, and sometimes move to another city.

    Profiles come first, but a few users have none; and some views follow no search.
    """
    return by_arrival(_users_acting(random.Random(seed), start_ms, rate))


def _users_acting(rng: random.Random, start_ms: int, rate: float) -> Iterator[tuple[int, list[Event]]]:
    users = math.ceil(rate * _USERS_PER_RATE)
    with_profile = math.ceil(users * _WITH_PROFILE)
    yield start_ms, [_profile(rng, user, start_ms) for user in range(with_profile)]
    for at in arrivals(rng, start_ms, rate):
        user, subject, chance = rng.randrange(users), rng.choice(_SUBJECTS), rng.random()
        if chance < 0.03 and user < with_profile:
            yield at, [_profile(rng, user, at)]
        elif chance < 0.4:
            search = text_of(terms=f"{subject} for beginners")
            yield (
                at,
                [("searches", f"user-{user}", search, at), _view(user, f"/{subject}/1", at + rng.randint(200, 4000))],
            )
        else:
            yield at, [_view(user, f"/{subject}", at)]


def _view(user: int, page: str, at: int) -> Event:
    return "page-views", f"user-{user}", text_of(page=page), at


def _profile(rng: random.Random, user: int, at: int) -> Event:
    interests = rng.sample(_SUBJECTS, 2)
    profile = text_of(name=_NAMES[user % len(_NAMES)], city=rng.choice(_CITIES), interests=interests)
    return "profiles", f"user-{user}", profile, at
