"""Requests of one record each: their rate, their latency, and the broker's CPU per request.

One connection shows a single producer, ten show several at a time. The load uses the same raw protocol for both
brokers: Produce 9, one batch with one record of 100 bytes, acks=1.
"""

from collections.abc import Mapping

from bench import programs
from bench.bench import Bench, Load
from bench.cases.case import Case
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics

_RECORD_BYTES = 100
_ACKS = "1"
_IN_FLIGHT = 5  # as many as a Java producer sends before it waits for a response
_RESPONSES_MISSING = 3  # the program's exit code if responses were missing at the end
_WARM_UP_SECONDS = 2.0

_RATE_GOAL = 2.0
_CPU_GOAL = 0.3
_P99_GOAL = 0.5


def _from(connections: int) -> str:
    return "1 connection" if connections == 1 else f"{connections} connections"


class _RequestCase(Case):
    """Keeps a topic of one partition on the warm broker for all rounds."""

    def __init__(self, name: str, rows: tuple[Row, ...], connections: int) -> None:
        super().__init__(name, rows)
        self.connections = connections
        self._topics: dict[str, str] = {}

    def set_up(self, bench: Bench, side: Side) -> None:
        self._topics[side.name] = Topics(bench.warm_broker(side)).create(1)

    def tear_down(self, bench: Bench, side: Side) -> None:
        topic = self._topics.pop(side.name, None)
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)

    def send(self, bench: Bench, side: Side, mode: str, seconds: float, rate_or_depth: int) -> Load:
        broker = bench.warm_broker(side)
        where = (broker.host, broker.port, self._topics[side.name], 1)
        what = (self.connections, _RECORD_BYTES, _ACKS, seconds, rate_or_depth)
        return bench.run_load(broker, bench.tools.requests, mode, *where, *what, accept=(0, _RESPONSES_MISSING))


class RequestRate(_RequestCase):
    """The maximum rate of requests, with a limit on those in flight."""

    def __init__(self, connections: int) -> None:
        name = f"requests_c{connections}"
        title = f"one-record requests, {_from(connections)} with {_IN_FLIGHT} in flight"
        section = "Requests of one record"
        rows = (
            Row(name, title, section, "requests/s", Better.MORE),
            Row(f"{name}_cpu", f"{title}: broker CPU per request", section, "µs", Better.LESS, _CPU_GOAL),
        )
        super().__init__(name, rows, connections)

    def warm_up(self, bench: Bench, side: Side) -> None:
        self.send(bench, side, "closed", _WARM_UP_SECONDS, _IN_FLIGHT)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        load = self.send(bench, side, "closed", max(2.0, 5 * bench.scale), _IN_FLIGHT)
        return {self.name: load["rate"], f"{self.name}_cpu": load.broker_cpu_seconds / load["requests"] * 1e6}


class Latency(_RequestCase):
    """Requests at a given rate, due at fixed times: the time from when each is due until its response."""

    def __init__(self, rate: int, connections: int) -> None:
        self.rate = rate
        name = f"latency_{rate}_c{connections}"
        title = f"latency at {rate:,}/s, {_from(connections)}"
        goal = _P99_GOAL if rate == 1000 else None
        rows = tuple(
            Row(f"{name}_{part}", f"{title}: {part}", "Latency of one-record requests", "ms", Better.LESS, part_goal)
            for part, part_goal in (("p50", None), ("p99", goal), ("p99.9", None))
        )
        super().__init__(name, rows, connections)

    def warm_up(self, bench: Bench, side: Side) -> None:
        self.send(bench, side, "open", _WARM_UP_SECONDS, self.rate)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        load = self.send(bench, side, "open", max(3.0, (10 if self.rate <= 1000 else 6) * bench.scale), self.rate)
        names = {"p50": "p50_us", "p99": "p99_us", "p99.9": "p999_us"}
        return {f"{self.name}_{part}": load[measured] / 1000 for part, measured in names.items()}


class HighestRate(_RequestCase):
    """The highest rate that is served in time, found within 5 % by doubling and then bisecting."""

    LIMIT_MS = 10.0
    FIRST_RATE = 5_000
    LOWEST_RATE = 500
    STEP_SECONDS = 2.0
    REFINEMENTS = 4

    def __init__(self, connections: int) -> None:
        name = f"highest_rate_c{connections}"
        title = f"highest one-record rate with p99 under 10 ms, {_from(connections)}"
        section = "Requests of one record"
        super().__init__(name, (Row(name, title, section, "requests/s", Better.MORE, _RATE_GOAL),), connections)

    def warm_up(self, bench: Bench, side: Side) -> None:
        self.send(bench, side, "closed", _WARM_UP_SECONDS, _IN_FLIGHT)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        good = float(self.FIRST_RATE)
        while not self._keeps_up(bench, side, good):
            good /= 2
            if good < self.LOWEST_RATE:
                raise programs.LoadError(f"p99 is over {self.LIMIT_MS} ms at {self.LOWEST_RATE} requests a second")
        bad = good * 2
        while self._keeps_up(bench, side, bad):
            good, bad = bad, bad * 2
        for _ in range(self.REFINEMENTS):
            middle = (good * bad) ** 0.5
            if self._keeps_up(bench, side, middle):
                good = middle
            else:
                bad = middle
        return {self.name: good}

    def _keeps_up(self, bench: Bench, side: Side, rate: float) -> bool:
        """Whether the broker keeps up with this rate. A failure may be chance, so it is tried once more."""
        return any(self._kept_up(self.send(bench, side, "open", self.STEP_SECONDS, int(rate)), rate) for _ in range(2))

    def _kept_up(self, load: Load, rate: float) -> bool:
        all_responded = load["responses"] == load["requests"]
        return all_responded and load["rate"] >= 0.98 * int(rate) and load["p99_us"] < self.LIMIT_MS * 1000
