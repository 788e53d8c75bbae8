"""The events that the programs read, beside those of kaspar.demo.events, which says what a generator is."""

import random
from collections.abc import Iterator

from kaspar.demo.events import Event, arrivals, by_arrival, text_of

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
