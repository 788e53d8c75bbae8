"""One simulation: a cluster, its clients and its faults, all of it decided by a seed.

the cluster starts, a topic is created -> faults and load -> all faults end -> the cluster settles -> the last check
"""

import asyncio
import gc
import logging
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.broker.replication.in_sync import AlterPartitionManager
from kaspar.controller.events import CreateTopics, FeatureUpdate, NewTopic, UpdateFeatures
from kaspar.controller.features import UpgradeType
from kaspar.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION
from kaspar.replication.in_sync import IsrProposal
from kaspar.replication.partition import Partition
from tests.sim.clients import Client, Consumer, Producer
from tests.sim.determinism import decided_by
from tests.sim.ensemble import Ensemble
from tests.sim.faults import Fault, FaultInjector, broker_ids
from tests.sim.machines import Machine, World
from tests.sim.network import Network
from tests.sim.oracle import Oracle
from tests.sim.plans import plan
from tests.sim.trace import LogCapture, Trace
from tests.sim.virtual_loop import PROCESS, WORLD, VirtualLoop

TOPIC: Final = "t"
PARTITIONS: Final = 2
CHAOS_S: Final = 10.0
SETTLED_WITHIN_S: Final = 120.0
STARTED_WITHIN_S: Final = 60.0
SESSION_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cluster is like."""

    brokers: int
    min_insync_replicas: int
    has_elr: bool
    one_machine: bool
    """Whether brokers can tell that another's process has ended, and need not wait for its session."""
    topic_configs: tuple[tuple[str, str], ...]

    @classmethod
    def drawn(cls, rng: random.Random) -> "Shape":
        min_isr = rng.choice((1, 2, 2))
        flush = rng.choice(((), (("flush.ms", "300"),), (("flush.messages", "1"),)))
        roll = rng.choice(((), (("segment.bytes", "1048576"),)))
        configs = (("min.insync.replicas", str(min_isr)), *flush, *roll)
        return cls(rng.choice((3, 3, 3, 4)), min_isr, rng.random() < 0.5, rng.random() < 0.6, configs)


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    faults: tuple[Fault, ...]
    violation: str | None
    trace: tuple[str, ...]
    records: int
    """Committed, as clients know."""
    changes: int
    """Of partitions in the metadata store."""
    is_void: bool
    """Whether it was ended early, because nothing was promised any more."""
    callbacks: int
    digest: str
    """The same for the same seed, on every run."""


def simulate(seed: int, faults: Sequence[Fault] | None = None, *, traced: bool = False) -> Result:
    """`faults`: fewer than the seed's, to find those that matter."""
    if faults is None:
        faults = plan(random.Random(f"{seed}/faults"), seconds=CHAOS_S)
    with _nothing_left_behind():
        return Simulation(seed, tuple(faults), traced=traced).run()


@contextmanager
def _nothing_left_behind() -> Iterator[None]:
    """Tasks of processes that never ended are finalised here, where what their code does then harms nobody."""
    hook = sys.unraisablehook
    try:
        yield
    finally:
        sys.unraisablehook = lambda _: None
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gc.collect()
        finally:
            sys.unraisablehook = hook
            logging.disable(logging.NOTSET)


class Simulation:
    def __init__(self, seed: int, faults: tuple[Fault, ...], *, traced: bool) -> None:
        self.seed = seed
        self.faults = faults
        self.shape = shape = Shape.drawn(self._rng("shape"))
        self.loop = loop = VirtualLoop(self._rng("threads"))
        self.trace = Trace(loop.time, wanted=traced)
        network = Network(loop, self._rng("network"))
        ensemble = Ensemble(loop, network, self._rng("ensemble"), timeout_s=SESSION_TIMEOUT_S)
        self.world = World(loop, network, ensemble, self.trace, self._rng("disks"), one_machine=shape.one_machine)
        self.oracle = Oracle(self.world, has_elr=shape.has_elr)
        ensemble.on_commit = self.oracle.stored
        self.injector = FaultInjector(self.world, self.oracle)
        self.oracle.on_change = self._something_changed
        self.clients: list[Client] = []
        self._is_prepared = False

    def _rng(self, purpose: str) -> random.Random:
        return random.Random(f"{self.seed}/{purpose}")

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        capture = LogCapture(self.trace, self.world.problem)
        root = logging.getLogger("kaspar")
        level, propagates = root.level, root.propagate
        root.addHandler(capture)
        root.setLevel(capture.level)
        root.propagate = False
        self.trace.note("world", f"seed {self.seed}: {self.shape}")
        try:
            with ExitStack() as patches:
                patches.enter_context(decided_by(self.seed, self.loop))
                patches.enter_context(self.world.replacing())
                patches.enter_context(self._watching_roles())
                patches.enter_context(self._watching_proposals())
                self._play()
        finally:
            root.removeHandler(capture)
            root.setLevel(level)
            root.propagate = propagates
            self.loop.close()
        oracle = self.oracle
        records = sum(map(len, oracle.known.values()))
        digest = f"{self.loop.callbacks}/{oracle.changes}/{records}/{self.loop.time():.9f}"
        return Result(
            self.seed,
            self.faults,
            self._problem(),
            tuple(self.trace.lines),
            records,
            oracle.changes,
            oracle.is_void,
            self.loop.callbacks,
            digest,
        )

    def _play(self) -> None:
        self._start_machines()
        if not self._run_for(STARTED_WITHIN_S, lambda: self._is_prepared and self.oracle.is_settled()):
            self._fail(f"the cluster did not start: {self.oracle.unsettled()}")
            return
        self._start_clients()
        start = self.loop.time()
        for fault in self.faults:
            self.loop.call_at(start + fault.at, self.injector.inject, fault)
        self._run_for(CHAOS_S, lambda: False)
        if self._is_decided():
            return
        self.injector.end_all()
        self._run_for(1.0, lambda: False)
        for client in self.clients:
            client.is_stopping = True
        if not self._run_for(SETTLED_WITHIN_S, self._is_over):
            waits = [client.name for client in self.clients if not client.is_done]
            self._fail(f"the cluster has not settled, {self.oracle.unsettled()}, and these wait: {waits}")
            return
        self.oracle.check_end(self._acknowledged)

    def _run_for(self, seconds: float, is_done: Callable[[], bool]) -> bool:
        """Whether it is done. A violation ends it at once."""
        deadline, look = self.loop.time() + seconds, self.oracle.look
        self.loop.run_until(deadline, lambda: self._is_decided() or is_done(), lambda: look(self.loop.time()))
        return not self._is_decided() and is_done()

    def _is_decided(self) -> bool:
        return self.oracle.is_void or self._problem() is not None

    def _problem(self) -> str | None:
        if self.oracle.violation is not None:
            return self.oracle.violation
        if self.world.problems:
            return self.world.problems[0]
        for process, message, problem in self.loop.problems:
            if "never retrieved" not in message and "destroyed" not in message:
                return f"{process}: {message} ({problem!r})"
        return None

    def _fail(self, sentence: str) -> None:
        if not self._is_decided():
            self.oracle.violated(sentence)

    def _is_over(self) -> bool:
        return all(client.is_done for client in self.clients) and self.oracle.is_settled()

    def _acknowledged(self, one: TopicPartition) -> list[tuple[str, Sequence[bytes]]]:
        return [
            (client.name, client.acknowledged)
            for client in self.clients
            if isinstance(client, Producer) and client.acks == -1 and client.topic_partition == one
        ]

    # -- the cast ----------------------------------------------------------------------------------------------------

    def _start_machines(self) -> None:
        rng = self._rng("machines")
        for broker_id in broker_ids(self.shape.brokers):
            machine = Machine(broker_id, self.world, SETTINGS, clock_ahead_ms=rng.randrange(-60_000, 60_000))
            self.world.machines[broker_id] = machine
            self.loop.call_later(rng.random(), machine.start)
        self.loop.call_later(2.0, self._prepare)

    def _prepare(self) -> None:
        machine = self.world.machines[broker_ids(1)[0]]
        if machine.process is None or not machine.is_running:
            self.loop.call_later(1.0, self._prepare)
            return
        broker = machine.broker
        assert broker is not None

        async def prepare() -> None:
            try:
                if len(broker.image.brokers) == self.shape.brokers:
                    await self._create_topic(broker.controller)
            except Refused as refusal:
                self.trace.note("world", f"not prepared: {refusal.message}")
            if not self._is_prepared:
                self.loop.call_later(1.0, self._prepare, context=WORLD)

        self.loop.call_soon(lambda: asyncio.ensure_future(prepare()), context=machine.process.context)

    async def _create_topic(self, controller: Any) -> None:
        if not self.shape.has_elr:  # a new cluster has them
            update = FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)
            await controller.submit(UpdateFeatures((update,)))
        ids = broker_ids(self.shape.brokers)
        assignments = tuple(
            (index, tuple(ids[(index + shift) % len(ids)] for shift in range(3))) for index in range(PARTITIONS)
        )
        topic = NewTopic(TOPIC, assignments=assignments, configs=self.shape.topic_configs)
        (created,) = await controller.submit(CreateTopics((topic,)))
        self._is_prepared = created.outcome.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    def _start_clients(self) -> None:
        rng = self._rng("clients")
        brokers = broker_ids(self.shape.brokers)
        pace_s = rng.choice((0.08, 0.2, 0.5))

        def common(name: str, index: int) -> tuple[Any, ...]:
            return name, TopicPartition(TOPIC, index), brokers, random.Random(rng.getrandbits(64)), self.oracle

        for index in range(PARTITIONS):
            self.clients += [
                Producer(*common(f"all{index}", index), acks=-1, producer_id=100 + index, pace_s=pace_s),
                Producer(*common(f"one{index}", index), acks=1, producer_id=-1, pace_s=3 * pace_s),
                Consumer(*common(f"reader{index}", index)),
            ]
        for client in self.clients:
            self.world.clients.append(client.name)
            self.loop.call_soon(lambda one=client: asyncio.ensure_future(one.run()), context=client.process.context)

    def _something_changed(self) -> None:
        """Not within the transaction or call, but before anybody hears of it."""
        self.loop.call_soon(self.injector.something_changed, context=WORLD)

    def _watching_roles(self) -> Any:
        """The oracle hears of everything that a broker acts by, at the moment when it begins to."""
        machines, oracle = self.world.machines, self.oracle

        def watched(decide: Callable[..., None]) -> Callable[..., None]:
            def decided(partition: Partition, *arguments: Any) -> None:
                decide(partition, *arguments)
                process = PROCESS.get()
                if process is not None:
                    oracle.role_decided(machines[partition.state.broker_id], process, partition)

            return decided

        return mock.patch.object(Partition, "lead_or_follow", watched(Partition.lead_or_follow))

    def _watching_proposals(self) -> Any:
        """Faults may come just as a leader asks for other in-sync replicas."""
        propose = AlterPartitionManager.propose

        def watched(manager: AlterPartitionManager, partition: Partition, proposal: IsrProposal) -> None:
            propose(manager, partition, proposal)
            self.loop.call_soon(self.injector.asked_for, partition.state.broker_id, proposal.added, context=WORLD)

        return mock.patch.object(AlterPartitionManager, "propose", watched)


SETTINGS: Final = {
    "log.dirs": "/data",
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": str(int(SESSION_TIMEOUT_S * 1000)),
    "kaspar.metrics.listener": "",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "num.recovery.threads.per.data.dir": "1",
    "replica.lag.time.max.ms": "1200",
    "replica.socket.timeout.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "leader.imbalance.check.interval.seconds": "4",
}
