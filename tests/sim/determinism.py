"""Takes from the product, while a simulation runs, what no seed decides: clocks, sources of randomness, and sets that
are iterated in the order of addresses.
"""

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from kaspar.network import pipeline
from kaspar.replication.partition import Partition
from tests.sim.virtual_loop import VirtualLoop

EPOCH_S = 1_700_000_000


class VirtualClock:
    """The clock of one broker. Wall clocks differ from machine to machine."""

    def __init__(self, loop: VirtualLoop, *, ahead_ms: int = 0) -> None:
        self._loop = loop
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return EPOCH_S * 1000 + int(self._loop.time() * 1000) + self._ahead_ms

    def monotonic(self) -> float:
        return self._loop.time()


class OrderedSet(dict[Any, None]):
    """A set that is iterated in the order of insertion, where the order of a plain one depends on addresses."""

    def add(self, item: object) -> None:
        self[item] = None

    def discard(self, item: object) -> None:
        self.pop(item, None)


def _with_ordered_waiters(init: Callable[..., None]) -> Callable[..., None]:
    def initialise(partition: Partition, *arguments: Any, **named: Any) -> None:
        init(partition, *arguments, **named)
        partition.fetch_waiters = OrderedSet()  # type: ignore[assignment]
        partition.replica_waiters = OrderedSet()  # type: ignore[assignment]

    return initialise


@contextlib.contextmanager
def decided_by(seed: int, loop: VirtualLoop) -> Iterator[None]:
    rng = random.Random(f"{seed}/product")
    plain_random = random.Random

    class SeededRandom(plain_random):  # type: ignore[valid-type, misc]
        def __init__(self, x: Any = None) -> None:
            super().__init__(rng.getrandbits(64) if x is None else x)

    state = random.getstate()
    random.seed(rng.getrandbits(64))
    with contextlib.ExitStack() as patches:
        for module, name, value in (
            (time, "monotonic", loop.time),
            (time, "perf_counter", loop.time),
            (time, "time", lambda: EPOCH_S + loop.time()),
            (time, "time_ns", lambda: (EPOCH_S + int(loop.time())) * 1_000_000_000),
            (time, "thread_time", lambda: 0.0),
            (time, "thread_time_ns", lambda: 0),
            (pipeline, "perf_counter", loop.time),
            (os, "urandom", rng.randbytes),
            (random, "Random", SeededRandom),
            (Partition, "__init__", _with_ordered_waiters(Partition.__init__)),
        ):
            patches.enter_context(mock.patch.object(module, name, value))
        try:
            yield
        finally:
            random.setstate(state)
