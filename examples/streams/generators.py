"""The events that the programs read: endless, lively, and the same for the same seed.

A generator yields (topic, key, value, timestamp in milliseconds) in the order of arrival, `rate` events a second on
average. Keys and values are text; values are JSON except for plain lines. Nothing here knows a broker or a clock.
"""

import heapq
import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Event = tuple[str, str | None, str | None, int]
Generator = Callable[[int, int, float], Iterator[Event]]
"""Takes a seed, the time at which it starts in milliseconds, and a rate."""


def arrivals(rng: random.Random, start_ms: int, rate: float) -> Iterator[int]:
    """Times of independent events, in milliseconds."""
    at = float(start_ms)
    while True:
        at += rng.expovariate(rate) * 1000
        yield int(at)


def by_arrival(steps: Iterable[tuple[int, list[Event]]]) -> Iterator[Event]:
    """The events of all steps in the order of their timestamps. A step has a time, and events of that time or later."""
    under_way: list[tuple[int, int, Event]] = []
    for number, (now, events) in enumerate(steps):
        for event in events:
            heapq.heappush(under_way, (event[3], number, event))
        while under_way and under_way[0][0] <= now:
            yield heapq.heappop(under_way)[2]


def text_of(**fields: Any) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


# --- word count -------------------------------------------------------------------------------------------------------

_WHO = ("the broker", "a consumer", "the producer", "Kaspar", "an old log", "the leader", "a follower", "somebody")
_DOES = ("reads", "writes", "forgets", "compacts", "follows", "counts", "waits for", "replays")
_WHAT = ("every record", "a batch", "the log", "its offsets", "all partitions", "a tombstone", "the last segment")
_WHEN = ("today", "again", "at night", "in order", "exactly once", "and then rests", "without a word")


def lines(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Sentences, without keys. The first words of each list are the most common."""
    rng = random.Random(seed)
    for at in arrivals(rng, start_ms, rate):
        words = " ".join(_mostly_first(rng, part) for part in (_WHO, _DOES, _WHAT, _WHEN))
        yield "lines", None, words[0].upper() + words[1:] + ".", at


def _mostly_first(rng: random.Random, choices: tuple[str, ...]) -> str:
    return rng.choices(choices, [1 / rank for rank in range(1, len(choices) + 1)])[0]


# --- stock statistics -------------------------------------------------------------------------------------------------

_PRICES = {"ACME": 120.0, "GLOBEX": 48.0, "INITECH": 15.5, "HOOLI": 310.0, "UMBRELLA": 77.0, "STARK": 205.0}
_NEWS_ONE_IN = 200
_NEWS_LASTS_MS = 3000


def trades(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Asks that walk at random. Now and then there is news about a stock, which is then traded most and moves most."""
    rng = random.Random(seed)
    prices, in_the_news, news_until = dict(_PRICES), "", start_ms
    for at in arrivals(rng, start_ms, rate):
        if rng.randrange(_NEWS_ONE_IN) == 0:
            in_the_news, news_until = rng.choice(list(prices)), at + _NEWS_LASTS_MS
        excited = at < news_until and rng.random() < 0.7
        symbol = in_the_news if excited else rng.choice(list(prices))
        prices[symbol] = max(0.5, prices[symbol] * (1 + rng.gauss(0, 0.01 if excited else 0.001)))
        yield "trades", symbol, text_of(ask=round(prices[symbol], 2), size=100 * rng.randint(1, 20)), at


# --- click enrichment -------------------------------------------------------------------------------------------------

_NAMES = ("Ada", "Björn", "Chidi", "Dilara", "Emeka", "Fatou", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lena")
_CITIES = ("Berlin", "Lagos", "Osaka", "Recife", "Uppsala", "Pune")
_SUBJECTS = ("surfing", "chess", "gardening", "cycling", "baking", "astronomy")
_USERS = 40
_FIRST_USER_WITHOUT_PROFILE = 36


def clicks(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Users search, look at a page about it a moment later, and sometimes move to another city.

    Profiles come first, but a few users have none; and some views follow no search.
    """
    return by_arrival(_users_acting(random.Random(seed), start_ms, rate))


def _users_acting(rng: random.Random, start_ms: int, rate: float) -> Iterator[tuple[int, list[Event]]]:
    yield start_ms, [_profile(rng, user, start_ms) for user in range(_FIRST_USER_WITHOUT_PROFILE)]
    for at in arrivals(rng, start_ms, rate):
        user, subject, chance = rng.randrange(_USERS), rng.choice(_SUBJECTS), rng.random()
        if chance < 0.03 and user < _FIRST_USER_WITHOUT_PROFILE:
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


# --- top ten ----------------------------------------------------------------------------------------------------------

_CATEGORIES = ("books", "games", "records", "tools")
_PRODUCTS = 60
_FASHION_CHANGES_ONE_IN = 2000


def purchases(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Orders of products, few of which sell well; which ones, changes with the fashion."""
    rng = random.Random(seed)
    products = [(category, f"{category}-{number:02}") for category in _CATEGORIES for number in range(_PRODUCTS)]
    rng.shuffle(products)
    weights = [1 / rank for rank in range(1, len(products) + 1)]
    for number, at in enumerate(arrivals(rng, start_ms, rate), start=1):
        if rng.randrange(_FASHION_CHANGES_ONE_IN) == 0:
            rng.shuffle(products)
        category, product = rng.choices(products, weights)[0]
        order = text_of(product=product, category=category, quantity=rng.choice((1, 1, 1, 2, 3)))
        yield "purchases", f"order-{number:06}", order, at


# --- sensors ----------------------------------------------------------------------------------------------------------

_ROOMS = ("cellar", "kitchen", "attic", "greenhouse", "garage")
_OFFLINE_ONE_IN = 120
_LONGEST_DELAY_MS = 1500
_OFFLINE_MS = (4_000, 20_000)


def readings(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Temperatures with the time at which they were measured, `at`. They arrive late by up to a second and a half.

    Now and then a sensor loses its connection. It then sends all that it measured at once, when it is back: some of
    that comes too late for any reasonable grace period. The timestamp of an event is the time of its arrival.
    """
    return by_arrival(_measured(random.Random(seed), start_ms, rate))


def _measured(rng: random.Random, start_ms: int, rate: float) -> Iterator[tuple[int, list[Event]]]:
    celsius = {room: 12.0 + 3 * number for number, room in enumerate(_ROOMS)}
    back_at = dict.fromkeys(_ROOMS, start_ms)
    for at in arrivals(rng, start_ms, rate):
        room = rng.choice(_ROOMS)
        celsius[room] += rng.gauss(0, 0.2)
        if rng.randrange(_OFFLINE_ONE_IN) == 0:
            back_at[room] = at + rng.randint(*_OFFLINE_MS)
        arrival = max(at + rng.randrange(_LONGEST_DELAY_MS), back_at[room])
        yield at, [("readings", room, text_of(celsius=round(celsius[room], 1), at=at), arrival)]


# --- log filter -------------------------------------------------------------------------------------------------------

_SERVICES = ("checkout", "search", "login", "images", "mail")
_LEVELS = {"DEBUG": 60, "INFO": 30, "WARN": 7, "ERROR": 3}
_EVENTS = {
    "DEBUG": ("cache hit for {n}", "query took {n} ms", "connection {n} reused"),
    "INFO": ("request {n} done", "user {n} signed in", "sent {n} messages"),
    "WARN": ("request {n} took 2300 ms", "retrying call {n}", "queue has {n} entries"),
    "ERROR": ("request {n} failed: timed out", "cannot reach the database, attempt {n}", "payment {n} was refused"),
}
_TRACE_LINE = "    at shop.checkout.Payment.charge(Payment.java:117)"


def log_lines(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Lines of a log, keyed by host: "LEVEL service message". Some errors have a stack trace, line by line."""
    rng = random.Random(seed)
    for at in arrivals(rng, start_ms, rate):
        level = rng.choices(list(_LEVELS), list(_LEVELS.values()))[0]
        host = f"host-{rng.randint(1, 4)}"
        message = rng.choice(_EVENTS[level]).format(n=rng.randint(1, 999))
        yield "log-lines", host, f"{level} {rng.choice(_SERVICES)} {message}", at
        if level == "ERROR" and rng.random() < 0.5:
            yield "log-lines", host, _TRACE_LINE, at
