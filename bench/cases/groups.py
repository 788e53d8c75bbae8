"""Groups: the duration of a rebalance, its cost for the broker, and the rate of offset commits.

A rebalance is measured in two ways. From the clients' point of view, members learn of it by their heartbeats, so most
of the time is spent waiting for these. For the broker's own work, every member sends its request at once, so that
nothing but the broker is waited for.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.bench import Bench, Load
from bench.cases.case import Case
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics

HEARTBEAT_MS = 500
PARTITIONS_OF_A_MEMBER = 2

_SECTION = "Rebalances"
_END_TO_END_GOAL = 1.1
_CPU_GOAL = 1.5  # simple code is worth a difference of up to this
_COMMIT_GOAL = 1.0
_REBALANCES = 8
_REBALANCES_AT_ONCE = 60
_COMMITS_IN_FLIGHT = 5


class _OnOneTopic(Case):
    """Keeps a topic on the warm broker for all rounds."""

    partitions = 1

    def __init__(self, name: str, rows: tuple[Row, ...]) -> None:
        super().__init__(name, rows)
        self.topics: dict[str, str] = {}

    def set_up(self, bench: Bench, side: Side) -> None:
        self.topics[side.name] = Topics(bench.warm_broker(side)).create(self.partitions)

    def tear_down(self, bench: Bench, side: Side) -> None:
        topic = self.topics.pop(side.name, None)
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)


class _Rebalance(_OnOneTopic):
    def __init__(self, protocol: str, members: int, rows: tuple[Row, ...]) -> None:
        super().__init__(f"rebalance_{protocol}_{members}", rows)
        self.members = members
        self.partitions = members * PARTITIONS_OF_A_MEMBER
        self._groups = 0

    def rebalance(self, bench: Bench, side: Side, program: Path) -> tuple[Load, Load]:
        """Run rebalances that wait for heartbeats, and ones that wait for nothing, each time with a new group."""
        broker = bench.warm_broker(side)
        loads = []
        for mode, count, heartbeat in (("waiting", _REBALANCES, (HEARTBEAT_MS,)), ("at-once", _REBALANCES_AT_ONCE, ())):
            self._groups += 1
            where = (broker.host, broker.port, f"{self.name}-{self._groups}", self.topics[side.name])
            size = (self.partitions, self.members, bench.scaled(count))
            loads.append(bench.run_load(broker, program, mode, *where, *size, *heartbeat))
        return loads[0], loads[1]


def _row(name: str, what: str, unit: str, goal: float | None) -> Row:
    return Row(name, what, _SECTION, unit, Better.LESS, goal)


class ClassicRebalance(_Rebalance):
    def __init__(self, members: int) -> None:
        name = f"rebalance_classic_{members}"
        title = f"classic, {members} members"
        rows = (
            _row(name, f"{title}: one joins, until all have their assignment", "ms", _END_TO_END_GOAL),
            _row(f"{name}_join_to_sync", f"{title}: last JoinGroup in to last SyncGroup out", "ms", None),
            _row(f"{name}_cpu", f"{title}: broker CPU of a rebalance", "ms", _CPU_GOAL),
        )
        super().__init__("classic", members, rows)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        waiting, at_once = self.rebalance(bench, side, bench.tools.classic_group)
        return {
            self.name: waiting["p50_us"] / 1000,
            f"{self.name}_join_to_sync": at_once["p50_us"] / 1000,
            f"{self.name}_cpu": _cpu_ms(at_once),
        }


class ConsumerRebalance(_Rebalance):
    def __init__(self, members: int) -> None:
        name = f"rebalance_consumer_{members}"
        title = f"consumer (KIP-848), {members} members"
        rows = (
            _row(name, f"{title}: one joins, until all have their assignment", "ms", _END_TO_END_GOAL),
            _row(f"{name}_cpu", f"{title}: broker CPU of a rebalance", "ms", _CPU_GOAL),
        )
        super().__init__("consumer", members, rows)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        waiting, at_once = self.rebalance(bench, side, bench.tools.consumer_group)
        return {self.name: waiting["p50_us"] / 1000, f"{self.name}_cpu": _cpu_ms(at_once)}


def _cpu_ms(load: Load) -> float:
    """The broker's CPU for one rebalance."""
    return load.broker_cpu_seconds / load["rebalances"] * 1000


class Commits(_OnOneTopic):
    """Commits of one partition. Each connection commits for its own group."""

    def __init__(self, connections: int) -> None:
        self.connections = connections
        name = f"commits_c{connections}"
        spread = "1 connection" if connections == 1 else f"{connections} connections"
        title = f"commits of one partition, {spread} with {_COMMITS_IN_FLIGHT} in flight"
        rows = (
            Row(name, title, "Commits", "commits/s", Better.MORE, _COMMIT_GOAL),
            Row(f"{name}_cpu", f"{title}: broker CPU per commit", "Commits", "µs", Better.LESS),
        )
        super().__init__(name, rows)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = bench.warm_broker(side)
        what = (self.topics[side.name], self.connections, _COMMITS_IN_FLIGHT, max(2.0, 5 * bench.scale))
        load = bench.run_load(broker, bench.tools.commits, broker.host, broker.port, *what)
        return {self.name: load["rate"], f"{self.name}_cpu": load.broker_cpu_seconds / load["commits"] * 1e6}
