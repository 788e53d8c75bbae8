"""Records over TLS through librdkafka, the broker's CPU for them, and new connections."""

from collections.abc import Mapping

from bench.bench import Load
from bench.cases.throughput import Shape
from bench.rows import Better, Row
from bench.security.bench import SecurityBench, SecurityCase, create_user
from bench.security.sides import SASL, TLS, port_of
from bench.sides import Side
from bench.topics import Topics

_SHAPE = Shape(1000, 1, "none")
_ACKS = "1"
_GIGABYTE = 1_000_000_000
_WARM_UP_SHARE = 0.6  # a JVM compiles its hot code first; the other broker gets the same load
_GOAL = 1.0

_CONNECTING_THREADS = 8
_CONNECTING_SECONDS = 5.0
_WARM_UP_CONNECTIONS = 3000  # a JVM needs this many until it is about as fast as it gets
_WARM_UP_TURNS = 12
_USER, _PASSWORD = "alice", "alice-secret"


def _rows(name: str, title: str) -> tuple[Row, ...]:
    section = "Records over TLS through librdkafka"
    return (
        Row(name, title, section, "MB/s", Better.MORE, _GOAL),
        Row(f"{name}_cpu", f"{title}: broker CPU", section, "s/GB", Better.LESS),
    )


class _RecordsOverTls(SecurityCase):
    def run_client(self, bench: SecurityBench, side: Side, mode: str, topic: str, *arguments: object) -> Load:
        broker = bench.warm_broker(side)
        bootstrap = f"{broker.host}:{port_of(broker, TLS)}"
        where = (*bench.tls_settings, mode, bootstrap, topic, _SHAPE.partitions)
        return bench.run_load(broker, bench.tools.client, *where, *arguments)

    def produce(self, bench: SecurityBench, side: Side, topic: str, records: int) -> Load:
        bench.touch_memory(_SHAPE.bytes_of(records))
        return self.run_client(bench, side, "produce", topic, records, _SHAPE.record_bytes, _ACKS, _SHAPE.codec)

    def values(self, load: Load) -> Mapping[str, float]:
        return {
            self.name: load["bytes"] / load["seconds"] / 1e6,
            f"{self.name}_cpu": load.broker_cpu_seconds / (load["bytes"] / _GIGABYTE),
        }


class ProduceOverTls(_RecordsOverTls):
    def __init__(self) -> None:
        super().__init__("tls_produce", _rows("tls_produce", f"produce {_SHAPE.title}, acks={_ACKS}"))

    def warm_up(self, bench: SecurityBench, side: Side) -> None:
        self._produce(bench, side, int(_SHAPE.records(bench) * _WARM_UP_SHARE))

    def measure(self, bench: SecurityBench, side: Side) -> Mapping[str, float]:
        return self.values(self._produce(bench, side, _SHAPE.records(bench)))

    def _produce(self, bench: SecurityBench, side: Side, records: int) -> Load:
        with Topics(bench.warm_broker(side)).temporary(_SHAPE.partitions) as topic:
            return self.produce(bench, side, topic, records)


class ConsumeOverTls(_RecordsOverTls):
    def __init__(self) -> None:
        super().__init__("tls_consume", _rows("tls_consume", f"consume {_SHAPE.title}"))
        self._topics: dict[str, str] = {}

    def set_up(self, bench: SecurityBench, side: Side) -> None:
        self._topics[side.name] = topic = Topics(bench.warm_broker(side)).create(_SHAPE.partitions)
        self.produce(bench, side, topic, _SHAPE.records(bench))

    def measure(self, bench: SecurityBench, side: Side) -> Mapping[str, float]:
        return self.values(self.run_client(bench, side, "consume", self._topics[side.name], _SHAPE.records(bench)))

    def tear_down(self, bench: SecurityBench, side: Side) -> None:
        topic = self._topics.pop(side.name, None)
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)


class _NewConnections(SecurityCase):
    """The maximum rate of new connections from a few clients, each of which opens one after the other."""

    def __init__(self, name: str, title: str, unit: str, goal: float | None) -> None:
        section = "New connections"
        rows = (
            Row(name, title, section, f"{unit}s/s", Better.MORE, goal),
            Row(f"{name}_cpu", f"{title}: broker CPU per {unit}", section, "µs", Better.LESS),
        )
        super().__init__(name, rows)

    def connect(self, bench: SecurityBench, side: Side, seconds: float) -> Load:
        raise NotImplementedError

    def warm_up(self, bench: SecurityBench, side: Side) -> None:
        made = 0.0
        for _ in range(_WARM_UP_TURNS):
            made += self.connect(bench, side, _CONNECTING_SECONDS)["connections"]
            if made >= _WARM_UP_CONNECTIONS:
                return

    def measure(self, bench: SecurityBench, side: Side) -> Mapping[str, float]:
        load = self.connect(bench, side, max(2.0, _CONNECTING_SECONDS * bench.scale))
        return {self.name: load["rate"], f"{self.name}_cpu": load.broker_cpu_seconds / load["connections"] * 1e6}


class Handshakes(_NewConnections):
    def __init__(self) -> None:
        title = f"TLS handshakes, {_CONNECTING_THREADS} clients"
        super().__init__("tls_handshakes", title, "handshake", None)

    def connect(self, bench: SecurityBench, side: Side, seconds: float) -> Load:
        broker = bench.warm_broker(side)
        how = (broker.host, port_of(broker, TLS), seconds, _CONNECTING_THREADS, bench.certificates.authority)
        return bench.run_load(broker, bench.tools.connections, "tls", *how)


class LogIns(_NewConnections):
    def __init__(self) -> None:
        title = f"SCRAM-SHA-512 log-ins, 4,096 iterations, {_CONNECTING_THREADS} clients"
        super().__init__("scram_logins", title, "log-in", _GOAL)

    def set_up(self, bench: SecurityBench, side: Side) -> None:
        create_user(bench.warm_broker(side), _USER, _PASSWORD)

    def connect(self, bench: SecurityBench, side: Side, seconds: float) -> Load:
        broker = bench.warm_broker(side)
        how = (broker.host, port_of(broker, SASL), seconds, _CONNECTING_THREADS, _USER, _PASSWORD)
        return bench.run_load(broker, bench.tools.connections, "scram", *how)
