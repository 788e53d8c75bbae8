"""The cost of ACLs and quotas for a broker, relative to its own rate without them.

The load is requests of one record, because nothing else does as little work besides. A round of one broker alternates
many times between with and without, for a second each, and takes the median of the ratios of successive turns, so that
disturbances by other processes affect both alike.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

from bench.acl_checks import acls as many_acls
from bench.bench import Load
from bench.rows import Better, Row
from bench.security.bench import SecurityBench, SecurityCase, create_acls, set_quotas
from bench.security.sides import authorizing
from bench.sides import Side
from bench.topics import Topics
from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from tests.peers.process import BrokerProcess

_CONNECTIONS = 10
_IN_FLIGHT = 5
_RECORD_BYTES = 100
_ACKS = "1"
_TURNS = 12
_TURN_SECONDS = 1.0
_WARM_UP_SECONDS = 10.0  # also in a quick run: a JVM that is not warm needs ten times as much CPU
_RESPONSES_MISSING = 3  # the load's exit code if responses were missing at the end

_RATE_GOAL = 0.95
_CPU_GOAL = 1.05
_NEVER_REACHED = 1e12
_TOPIC = "bench-requests"
_USER = "User:ANONYMOUS"


class Turns:
    """The loads of one kind, with or without, in the order in which they ran."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.cpu_us: list[float] = []  # per request

    def add(self, load: Load) -> None:
        self.rates.append(load["rate"])
        self.cpu_us.append(load.broker_cpu_seconds / load["requests"] * 1e6)


def _median_ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """The median ratio of successive turns."""
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


class _Cost(SecurityCase):
    """Compares requests `with_it` and `without_it`, both to a topic of one partition."""

    def __init__(self, name: str, what: str) -> None:
        section = f"One-record requests, {_CONNECTIONS} connections with {_IN_FLIGHT} in flight"
        rows = (
            Row(f"{name}_rate", f"with {what}", section, "requests/s", Better.MORE),
            Row(f"{name}_cpu", f"with {what}: broker CPU per request", section, "µs", Better.LESS),
            Row(
                f"{name}_share",
                f"with {what}: of its own rate without",
                section,
                "of that rate",
                Better.MORE,
                _RATE_GOAL,
                goal_is_value=True,
            ),
            Row(
                f"{name}_cpu_share",
                f"with {what}: of its own CPU without",
                section,
                "of that CPU",
                Better.LESS,
                _CPU_GOAL,
                goal_is_value=True,
            ),
        )
        super().__init__(name, rows)

    def with_it(self, bench: SecurityBench, side: Side) -> BrokerProcess:
        """The broker to which requests are sent, with ACLs or quotas in effect."""
        raise NotImplementedError

    def without_it(self, bench: SecurityBench, side: Side) -> BrokerProcess:
        return bench.warm_broker(side)

    def warm_up(self, bench: SecurityBench, side: Side) -> None:
        for broker_of in (self.with_it, self.without_it):
            self._send(bench, broker_of(bench, side), _WARM_UP_SECONDS)

    def measure(self, bench: SecurityBench, side: Side) -> Mapping[str, float]:
        with_it, without_it = Turns(), Turns()
        seconds = max(0.5, _TURN_SECONDS * bench.scale)
        pair: list[tuple[Callable[[SecurityBench, Side], BrokerProcess], Turns]]
        pair = [(self.with_it, with_it), (self.without_it, without_it)]
        for turn in range(_TURNS):
            for broker_of, into in pair if turn % 2 == 0 else reversed(pair):
                into.add(self._send(bench, broker_of(bench, side), seconds))
        return {
            f"{self.name}_rate": statistics.median(with_it.rates),
            f"{self.name}_cpu": statistics.median(with_it.cpu_us),
            f"{self.name}_share": _median_ratio(with_it.rates, without_it.rates),
            f"{self.name}_cpu_share": _median_ratio(with_it.cpu_us, without_it.cpu_us),
        }

    def _send(self, bench: SecurityBench, broker: BrokerProcess, seconds: float) -> Load:
        where = ("closed", broker.host, broker.port, _TOPIC, 1)
        what = (_CONNECTIONS, _RECORD_BYTES, _ACKS, seconds, _IN_FLIGHT)
        return bench.run_load(broker, bench.tools.requests, *where, *what, accept=(0, _RESPONSES_MISSING))


class Acls(_Cost):
    """A broker with an authorizer, and one without. Its client has a handful of ACLs; `others` are for other clients
    and other topics.
    """

    def __init__(self, name: str, what: str, others: Callable[[], list[Acl]]) -> None:
        super().__init__(name, what)
        self._others = others

    def set_up(self, bench: SecurityBench, side: Side) -> None:
        guarded = self.with_it(bench, side)
        for broker in (guarded, self.without_it(bench, side)):
            Topics(broker).create(1, _TOPIC)
        create_acls(guarded, [*handful(), *self._others()])

    def with_it(self, bench: SecurityBench, side: Side) -> BrokerProcess:
        return bench.warm_broker(authorizing(side, self.name))

    def tear_down(self, bench: SecurityBench, side: Side) -> None:
        bench.drop_broker(authorizing(side, self.name))
        Topics(self.without_it(bench, side)).delete(_TOPIC)


class Quotas(_Cost):
    """One broker, whose quotas are set and removed."""

    def __init__(self, name: str, what: str, keys: tuple[str, ...]) -> None:
        super().__init__(name, what)
        self._quotas = dict.fromkeys(keys, _NEVER_REACHED)

    def set_up(self, bench: SecurityBench, side: Side) -> None:
        Topics(bench.warm_broker(side)).create(1, _TOPIC)

    def with_it(self, bench: SecurityBench, side: Side) -> BrokerProcess:
        broker = bench.warm_broker(side)
        set_quotas(broker, self._quotas)
        return broker

    def without_it(self, bench: SecurityBench, side: Side) -> BrokerProcess:
        broker = bench.warm_broker(side)
        set_quotas(broker, self._quotas, remove=True)
        return broker

    def tear_down(self, bench: SecurityBench, side: Side) -> None:
        Topics(self.without_it(bench, side)).delete(_TOPIC)


def handful() -> list[Acl]:
    """ACLs for everything on the cluster, and for what a client does with its own topics."""

    def allow(kind: ResourceType, name: str, pattern: PatternType, operation: AclOperation) -> Acl:
        return Acl(kind, name, pattern, _USER, "*", operation, AclPermissionType.ALLOW)

    operations = AclOperation.WRITE, AclOperation.READ, AclOperation.CREATE, AclOperation.DELETE
    return [
        allow(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, AclOperation.ALL),
        *(allow(ResourceType.TOPIC, "bench", PatternType.PREFIXED, operation) for operation in operations),
    ]


def few() -> list[Acl]:
    return []


def hundred_thousand() -> list[Acl]:
    return many_acls()
