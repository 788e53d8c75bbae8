"""Inputs of the comparison: random ones, which a seed decides, and fixed ones for the corners.

An input is a list of steps for a topology that reads the given topics. Keys and the first letters of values are the
same few letters, so that joins by key and by foreign key find partners.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

LETTERS = "abc"
RANDOM_INPUTS = 12
EPOCH = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Piped:
    """A record of an input topic."""

    topic: str
    key: str | None
    value: str | None
    timestamp: int
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AdvanceWallClock:
    milliseconds: int


Step: TypeAlias = Piped | AdvanceWallClock
Steps: TypeAlias = list[Step]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the timestamps of a random input run."""

    start: int
    advances: Sequence[int]
    """One of them is added to the time at each record."""
    delays: Sequence[int] = field(default=(0,))
    """One of them is subtracted from the time to give the timestamp."""


SHAPES = (
    Shape(0, (0, 1, 5, 10, 30)),
    Shape(0, (0, 5, 20, 40), (0, 0, 0, 10, 50, 90)),
    Shape(EPOCH, (0, 0, 0, 10), (0, 0, 10)),
    Shape(EPOCH + 7, (0, 10, 25, 50, 100), (0, 0, 0, 50, 100, 101, 150, 151)),
    Shape(1_000, (1, 20, 60, 400), (0, 0, 0, 60, 120, 300)),
    Shape(0, (50,), (0, 0, 50, 100, 150)),
)


def inputs(topics: Sequence[str]) -> Mapping[str, Steps]:
    """All inputs of a topology, by name."""
    fixed = {name: make(topics) for name, make in FIXED.items()}
    return fixed | {f"seed-{seed}": random_steps(topics, seed) for seed in range(RANDOM_INPUTS)}


def random_steps(topics: Sequence[str], seed: int) -> Steps:
    rng = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    time = shape.start
    steps: Steps = []
    for _ in range(rng.randint(25, 50)):
        if rng.random() < 0.1:
            steps.append(AdvanceWallClock(rng.choice((10, 49, 50, 51, 120))))
        time += rng.choice(shape.advances)
        timestamp = max(0, time - rng.choice(shape.delays))
        headers = (("trace", str(len(steps))),) if rng.random() < 0.1 else ()
        steps.append(Piped(rng.choice(topics), _key(rng), _value(rng), timestamp, headers))
    return steps


def _key(rng: random.Random) -> str | None:
    return None if rng.random() < 0.04 else rng.choice(LETTERS)


def _value(rng: random.Random) -> str | None:
    chosen = rng.random()
    if chosen < 0.12:
        return None
    if chosen < 0.18:
        return "x"  # deletes an aggregate
    if chosen < 0.2:
        return ""
    return "".join(rng.choices(LETTERS, k=rng.randint(1, 3)))


# --- corners ----------------------------------------------------------------------------------------------------------


def nothing(topics: Sequence[str]) -> Steps:
    return []


def boundaries(topics: Sequence[str]) -> Steps:
    """Timestamps at, just before and just after the ends of windows and of their grace, with one key."""
    timestamps = (
        0,
        49,
        50,
        51,
        99,
        100,
        101,
        99,
        149,
        99,
        150,
        99,
        100,
        151,
        49,
        199,
        200,
        100,
        249,
        100,
        250,
        100,
        150,
    )
    return [
        Piped(topics[number % len(topics)], "a", LETTERS[number % 3] * 2, timestamp)
        for number, timestamp in enumerate(timestamps)
    ]


def boundaries_by_topic(topics: Sequence[str]) -> Steps:
    """The same times for every topic, which come one after the other: late ones for all but the first."""
    timestamps = (0, 49, 50, 51, 100, 150, 160, 161, 110, 111, 260)
    return [Piped(topic, "a", f"a{topic[0]}", timestamp) for topic in topics for timestamp in timestamps]


def in_steps_of_one(topics: Sequence[str]) -> Steps:
    """Every topic at each of many times, so that the first and last partner of every record is seen."""
    return [
        Piped(topic, "b", f"b{number % 10}", EPOCH + number * 11)
        for number in range(12)
        for topic in (topics if number % 2 else reversed(topics))
    ]


def equal_timestamps(topics: Sequence[str]) -> Steps:
    values = ("a", "ab", "b", "bc", "ca", None, "abc", "x", "c", "bb")
    return [Piped(topic, key, value, 1_000) for value in values for topic in topics for key in ("a", "b")]


def tombstones(topics: Sequence[str]) -> Steps:
    """Deleted before it was there, written, deleted twice, written again, the same value again, late."""
    values = (None, "ab", None, None, "bc", "bc", "b", "ac", "x", "ba", None)
    timestamps = (10, 20, 30, 30, 40, 50, 45, 60, 70, 5, 80)
    return [
        Piped(topic, key, value, timestamp)
        for value, timestamp in zip(values, timestamps, strict=True)
        for topic in topics
        for key in ("b", "a")
    ]


def one_topic_at_a_time(topics: Sequence[str]) -> Steps:
    """All records of a topic, then all of the next; first the last topic, so that tables are filled, then back."""
    order = [*reversed(topics), *topics]
    values = ("ab", "bc", "c", None, "ca", "aa")
    return [
        Piped(topic, LETTERS[number % 3], value, 100 * turn + 10 * number)
        for turn, topic in enumerate(order)
        for number, value in enumerate(values)
    ]


def null_keys(topics: Sequence[str]) -> Steps:
    return [
        Piped(topic, key, value, 10 * number)
        for number, (key, value) in enumerate([(None, "ab"), ("a", "ab"), (None, None), (None, "x"), ("a", None)] * 3)
        for topic in topics
    ]


def stream_time_jumps(topics: Sequence[str]) -> Steps:
    """Groups of records that are further and further apart, each followed by late ones of several keys."""
    steps: Steps = []
    time = 0
    for gap in (10, 60, 110, 160, 210, 1_000, 100_000):
        time += gap
        for number, key in enumerate("cab"):
            topic = topics[(number + gap // 10) % len(topics)]
            steps.append(Piped(topic, key, f"{key}{number}", time + number))
            steps.append(Piped(topic, key, f"a{key}", max(0, time - 40 * number)))
    return steps


def ticks(topics: Sequence[str]) -> Steps:
    """The wall clock between records."""
    steps: Steps = [AdvanceWallClock(49), AdvanceWallClock(1)]
    for number, advance in enumerate((10, 50, 140, 1, 49, 500)):
        steps.append(Piped(topics[number % len(topics)], LETTERS[number % 3], "ab", 60 * number))
        steps.append(AdvanceWallClock(advance))
    return steps


FIXED: Mapping[str, Callable[[Sequence[str]], Steps]] = {
    "nothing": nothing,
    "boundaries": boundaries,
    "boundaries-by-topic": boundaries_by_topic,
    "in-steps-of-one": in_steps_of_one,
    "equal-timestamps": equal_timestamps,
    "tombstones": tombstones,
    "one-topic-at-a-time": one_topic_at_a_time,
    "null-keys": null_keys,
    "stream-time-jumps": stream_time_jumps,
    "ticks": ticks,
}
