"""What goes wrong in a simulation, and when: drawn from the seed before it begins, so that it can be shortened.

A target is a role (the leader of a partition, the controller) or a broker; who that is, is found when the moment has
come. Each simulation draws from some kinds of faults only: what some of them do together is not hidden by the others.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.events import AlterReassignments, ControllerEvent, ElectionType, ElectLeaders, Reassignment
from kaspar.metadata import layout
from tests.sim.ensemble import HOST as ZOOKEEPER
from tests.sim.machines import Machine, World
from tests.sim.oracle import Oracle

LONGEST_S: Final = 6.0


class Kind(Enum):
    KILL = "the process ends, and its files stay as they are"
    POWER = "the machine loses power, and what was not synced"
    STOP = "the broker stops in order"
    PAUSE = "the process stands still"
    CUT = "two brokers do not reach each other"
    CUT_ONE_WAY = "what one broker sends does not reach the other"
    ISOLATE = "a broker reaches no other, nor a client, but ZooKeeper"
    MUTE = "what a broker sends reaches nobody, ZooKeeper included"
    DEAFEN = "nothing reaches a broker, also not from ZooKeeper"
    CUT_ZOOKEEPER = "a broker does not reach ZooKeeper"
    EXPIRE = "ZooKeeper ends a broker's session"
    MISTAKEN = "a broker is taken for dead, though it is alive"
    RESET = "connections break"
    SLOW = "the network is slow"
    UNCERTAIN = "calls of ZooKeeper have unknown outcomes"
    STALE = "ZooKeeper's servers are far behind their leader"
    ELECT = "someone asks for the preferred leaders"
    REASSIGN = "a partition gets other replicas"


TARGETS: Final = ("leader 0", "leader 1", "follower 0", "follower 1", "controller", "any")
AGAIN: Final = "again"
"""The target of the fault that this one follows, which has the same number."""


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    kind: Kind
    target: str
    number: int
    """Decides whatever else there is to decide."""
    for_s: float
    waits_for_change: bool = False
    """Not at this moment, but as soon as the metadata store has another state of a partition or another registration,
    before anybody hears of it, or a leader is about to ask for other in-sync replicas.
    """

    def __str__(self) -> str:
        waits = ", with the next change" if self.waits_for_change else ""
        return f"{self.at:.2f} {self.kind.name} {self.target} #{self.number} for {self.for_s:.2f}{waits}"


def plan(rng: random.Random, *, seconds: float) -> list[Fault]:
    """In the order of time."""
    kinds = [kind for kind in Kind if rng.random() < 0.35] or [Kind.KILL]
    faults: list[Fault] = []
    for _ in range(rng.randint(1, 12)):
        fault = _drawn(rng, kinds, at=rng.random() * seconds, target=rng.choice(TARGETS), number=rng.randrange(1 << 16))
        faults.append(fault)
        if rng.random() < 0.3:
            # Another one elsewhere, at the same moment.
            at, number = fault.at + rng.random() * 0.05, rng.randrange(1 << 16)
            companion = _drawn(rng, kinds, at=at, target=rng.choice(TARGETS), number=number)
            faults.append(replace(companion, waits_for_change=fault.waits_for_change))
        while rng.random() < 0.3:
            # Another one on the same broker, just as it recovers, or before that.
            ends_at = fault.at + fault.for_s
            just_after = ends_at + rng.random() * rng.choice((0.02, 0.2, 1.0))
            at = rng.choice((just_after, fault.at + fault.for_s * rng.random()))
            fault = _drawn(rng, kinds, at=at, target=AGAIN, number=fault.number)
            if fault.at < seconds:
                faults.append(fault)
    return sorted(faults, key=lambda fault: fault.at)


def _drawn(rng: random.Random, kinds: Sequence[Kind], *, at: float, target: str, number: int) -> Fault:
    for_s = rng.choice((0.1, 0.5, 2.0, LONGEST_S)) * (0.3 + 0.7 * rng.random())
    return Fault(round(at, 3), rng.choice(kinds), target, number, round(for_s, 3), rng.random() < 0.25)


class FaultInjector:
    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._under_way: dict[Fault, Callable[[], None]] = {}
        """How each of them is ended."""
        self._armed: list[Fault] = []
        """Those that wait for a change."""
        self._targets: dict[int, Machine] = {}

    def inject(self, fault: Fault) -> None:
        """Its moment has come."""
        if fault.waits_for_change:
            self._armed.append(fault)
        else:
            self._inject(fault)

    def something_changed(self) -> None:
        """What faults wait for."""
        armed, self._armed = self._armed, []
        for fault in armed:
            self._inject(fault)

    def _inject(self, fault: Fault) -> None:
        machine = self._targets[fault.number] = self._target(fault)
        undo = self._carry_out(fault, machine)
        self._world.trace.note("fault", f"{fault.kind.name} {machine.host} for {fault.for_s:.2f}: {fault.kind.value}")
        if undo is not None:
            self._under_way[fault] = undo
            self._world.loop.call_later(fault.for_s, self._end, fault)

    def end_all(self) -> None:
        """Everything is mended, and every broker started."""
        self._armed.clear()
        for fault in list(self._under_way):
            self._end(fault)
        world = self._world
        world.network.mend_all()
        world.trace.note("fault", "all faults are over")
        for machine in world.machines.values():
            machine.boot()

    def _end(self, fault: Fault) -> None:
        undo = self._under_way.pop(fault, None)
        if undo is not None:
            undo()

    def _target(self, fault: Fault) -> Machine:
        machines = list(self._world.machines.values())
        target = machines[fault.number % len(machines)]
        if fault.target == AGAIN:
            return self._targets.get(fault.number, target)
        role, _, index = fault.target.partition(" ")
        if index:
            image = self._oracle.partition(int(index))
            if image is None:
                return target
            if role == "leader":
                return self._world.machines.get(image.leader, target)
            followers = [each for each in image.replicas if each != image.leader]
            return self._world.machines[followers[fault.number % len(followers)]]
        return (self._controller() if role == "controller" else None) or target

    def _controller(self) -> Machine | None:
        seat = self._world.ensemble.find(layout.CONTROLLER_SEAT)
        return None if seat is None else self._world.machines[layout.decode_seat(seat.value)[0]]

    def _carry_out(self, fault: Fault, machine: Machine) -> Callable[[], None] | None:
        """Returns what ends it, unless it ends by itself."""
        world = self._world
        others = [each for each in world.machines.values() if each is not machine]
        other = self._controller() if fault.number & 8 else None
        if other is None or other is machine:
            other = others[(fault.number >> 4) % len(others)]
        hosts = [each.host for each in others] + list(world.clients)
        match fault.kind:
            case Kind.KILL | Kind.POWER:
                return self._crash(machine, power=fault.kind is Kind.POWER)
            case Kind.STOP:
                machine.stop()
                return machine.start
            case Kind.PAUSE:
                return self._pause(machine)
            case Kind.CUT:
                return self._cut([(machine.host, other.host), (other.host, machine.host)])
            case Kind.CUT_ONE_WAY:
                return self._cut([(machine.host, other.host)])
            case Kind.ISOLATE:
                return self._cut([link for host in hosts for link in ((machine.host, host), (host, machine.host))])
            case Kind.MUTE:
                return self._cut([(machine.host, host) for host in (*hosts, ZOOKEEPER)])
            case Kind.DEAFEN:
                return self._cut([(host, machine.host) for host in (*hosts, ZOOKEEPER)])
            case Kind.CUT_ZOOKEEPER:
                return self._cut([(machine.host, ZOOKEEPER), (ZOOKEEPER, machine.host)])
            case Kind.EXPIRE:
                if machine.process is not None:
                    for session in world.ensemble.sessions_of(machine.process):
                        world.ensemble.end(session)
            case Kind.MISTAKEN:
                return self._mistake(machine)
            case Kind.RESET:
                world.network.reset_some(random.Random(fault.number))
            case Kind.SLOW:
                world.network.slowness = 30.0
                return self._usual_speed
            case Kind.UNCERTAIN:
                world.ensemble.loss_rate = 0.2
                return self._certain
            case Kind.STALE:
                world.ensemble.lag_s = 0.3
                return self._prompt
            case Kind.ELECT:
                self._submit(machine, ElectLeaders(ElectionType.PREFERRED))
            case Kind.REASSIGN:
                self._reassign(fault, machine)
        return None

    def _crash(self, machine: Machine, *, power: bool) -> Callable[[], None] | None:
        """Not where it would cost what nobody promises to keep. A machine whose broker is down may still lose power; if
        that one had stopped in order, nothing is lost.
        """
        is_down = machine.process is None
        if is_down and power and machine.has_closed:
            machine.kill(power=True)
            return machine.boot
        if power and not self._oracle.may_crash(machine, power=True):
            power = False
        if not power and (is_down or not self._oracle.may_crash(machine, power=False)):
            return None
        self._oracle.crashed(machine, power=power)
        machine.kill(power=power)
        return machine.boot

    def _pause(self, machine: Machine) -> Callable[[], None] | None:
        process, loop = machine.process, self._world.loop
        if process is None or process.is_paused:
            return None
        process.is_paused = True
        return lambda: loop.resume(process)

    def _mistake(self, machine: Machine) -> Callable[[], None]:
        world = self._world
        world.mistaken_for_dead.add(machine.host)
        if machine.process is not None:
            world.network.reset_all_of(machine.process)
        return lambda: world.mistaken_for_dead.discard(machine.host)

    def _cut(self, links: list[tuple[str, str]]) -> Callable[[], None]:
        network = self._world.network
        for link in links:
            network.cut(*link)

        def mend() -> None:
            for link in links:
                network.mend(*link)

        return mend

    def _usual_speed(self) -> None:
        self._world.network.slowness = 1.0

    def _certain(self) -> None:
        self._world.ensemble.loss_rate = 0.0

    def _prompt(self) -> None:
        self._world.ensemble.lag_s = 0.005

    # -- what operators do -------------------------------------------------------------------------------------------

    def _reassign(self, fault: Fault, machine: Machine) -> None:
        rng = random.Random(fault.number)
        partitions = list(self._oracle.partitions())
        if partitions:
            one, image = rng.choice(partitions)
            brokers = list(self._world.machines)
            rng.shuffle(brokers)
            replicas = tuple(brokers[: len(image.target_replicas)])
            self._submit(machine, AlterReassignments((Reassignment(*one, replicas),)))

    def _submit(self, machine: Machine, event: ControllerEvent[Any]) -> None:
        process, broker = machine.process, machine.broker
        if process is None or broker is None or not machine.is_running:
            return

        async def submit() -> None:
            try:
                await broker.controller.submit(event)
            except Refused as refusal:
                self._world.trace.note(machine.host, f"{type(event).__name__} is refused: {refusal.message}")

        self._world.loop.call_soon(lambda: asyncio.ensure_future(submit()), context=process.context)


def broker_ids(count: int) -> list[BrokerId]:
    return [BrokerId(number) for number in range(1, count + 1)]
