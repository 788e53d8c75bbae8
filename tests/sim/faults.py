"""What can go wrong in a simulation, and how it is done. Which faults a seed has is decided in plans.py.

A target is a role (the leader of a partition, the controller) or a broker; who that is, is found when the moment has
come.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.events import AlterReassignments, ControllerEvent, ElectionType, ElectLeaders, Reassignment
from kaspar.metadata.layout import controller_nodes, store_paths
from tests.sim.ensemble import HOST as ZOOKEEPER
from tests.sim.machines import Machine, World
from tests.sim.oracle import Oracle


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
    STALL = "what one broker sends the other on connections that they have arrives late, and new ones are not affected"
    SLOW = "the network is slow"
    UNCERTAIN = "calls of ZooKeeper have unknown outcomes"
    STALE = "ZooKeeper's servers are far behind their leader"
    ELECT = "someone asks for the preferred leaders"
    REASSIGN = "a partition gets other replicas"
    MOVE = "someone makes another replica the preferred leader, and has it elected"


class Moment(Enum):
    """What a fault may wait for. It comes before anybody hears of it."""

    CHANGE = "another state of a partition or another registration is stored, or a leader asks for in-sync replicas"
    JOINING = "a leader asks for another replica to be in sync"
    LEAVING = "a leader asks for replicas to be in sync no more"


TARGETS: Final = ("leader 0", "leader 1", "follower 0", "follower 1", "controller", "any")
BYSTANDERS: Final = ("bystander 0", "bystander 1")
"""Brokers that do not control. Both have a replica of the first partition."""
PROPOSER: Final = "proposer"
"""The leader that has last asked for other in-sync replicas."""
JOINING: Final = "joining"
"""The replica that it has last asked for."""
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
    waits_for: Moment | None = None
    """Then it comes not at `at`, but with the next such moment."""
    after_s: float = 0.0
    """How long after that."""
    other: str = ""
    """The target at the other end of a link. Without it the number decides."""

    def __str__(self) -> str:
        other = f" and {self.other}" if self.other else ""
        later = f" + {self.after_s:.2f}" if self.after_s else ""
        waits = f", {self.waits_for.name}{later}" if self.waits_for is not None else ""
        return f"{self.at:.2f} {self.kind.name} {self.target}{other} #{self.number} for {self.for_s:.2f}{waits}"


class FaultInjector:
    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._under_way: dict[Fault, Callable[[], None]] = {}
        """How each of them is ended."""
        self._armed: list[Fault] = []
        """Those that wait for their moment."""
        self._targets: dict[int, Machine] = {}
        self._proposed: dict[str, Machine] = {}
        """Who PROPOSER and JOINING are."""
        self._is_over = False

    def inject(self, fault: Fault) -> None:
        """Its time has come."""
        if fault.waits_for is not None:
            self._armed.append(fault)
        else:
            self._inject(fault, *self._ends_of(fault))

    def something_changed(self, moment: Moment = Moment.CHANGE) -> None:
        """What faults wait for."""
        due = [fault for fault in self._armed if fault.waits_for in (moment, Moment.CHANGE)]
        self._armed = [fault for fault in self._armed if fault not in due]
        for fault in due:
            ends = self._ends_of(fault)
            if fault.after_s:
                self._world.loop.call_later(fault.after_s, self._inject, fault, *ends)
            else:
                self._inject(fault, *ends)

    def asked_for(self, leader: BrokerId, added: BrokerId | None) -> None:
        """A leader asks for another in-sync replica, or for fewer."""
        machines = self._world.machines
        self._proposed[PROPOSER] = machines[leader]
        if added is not None:
            self._proposed[JOINING] = machines[added]
        self.something_changed(Moment.LEAVING if added is None else Moment.JOINING)

    def _inject(self, fault: Fault, machine: Machine, other: Machine) -> None:
        if self._is_over:
            return
        undo = self._carry_out(fault, machine, other)
        self._world.trace.note("fault", f"{fault.kind.name} {machine.host} for {fault.for_s:.2f}: {fault.kind.value}")
        if undo is not None:
            self._under_way[fault] = undo
            self._world.loop.call_later(fault.for_s, self._end, fault)

    def end_all(self) -> None:
        """Everything is mended, and every broker started."""
        self._is_over = True
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

    def _ends_of(self, fault: Fault) -> tuple[Machine, Machine]:
        """The target, and the broker at the other end of a link."""
        machine = self._targets[fault.number] = self._target(fault.target, fault.number)
        other = self._target(fault.other, fault.number) if fault.other else None
        if other is None and fault.number & 8:
            other = self._controller()
        if other is None or other is machine:
            others = [each for each in self._world.machines.values() if each is not machine]
            other = others[(fault.number >> 4) % len(others)]
        return machine, other

    def _target(self, name: str, number: int) -> Machine:
        machines = list(self._world.machines.values())
        target = machines[number % len(machines)]
        if name == AGAIN:
            return self._targets.get(number, target)
        if name in (PROPOSER, JOINING):
            return self._proposed.get(name, target)
        role, _, index = name.partition(" ")
        if role == "bystander":
            controller = self._controller() or machines[-1]
            return [each for each in machines if each is not controller][int(index)]
        if index:
            image = self._oracle.partition(int(index))
            if image is None:
                return target
            if role == "leader":
                return self._world.machines.get(image.leader, target)
            followers = [each for each in image.replicas if each != image.leader]
            return self._world.machines[followers[number % len(followers)]]
        return (self._controller() if role == "controller" else None) or target

    def _controller(self) -> Machine | None:
        seat = self._world.ensemble.find(store_paths.CONTROLLER_SEAT)
        return None if seat is None else self._world.machines[controller_nodes.decode_seat(seat.value)[0]]

    def _carry_out(self, fault: Fault, machine: Machine, other: Machine) -> Callable[[], None] | None:
        """Returns what ends it, unless it ends by itself."""
        world = self._world
        hosts = [each.host for each in world.machines.values() if each is not machine] + list(world.clients)
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
            case Kind.STALL:
                share = 1.0 if fault.number & 1 else 0.5
                return world.network.stall(machine.host, other.host, random.Random(fault.number), share)
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
            case Kind.MOVE:
                role, _, index = fault.target.partition(" ")
                self._move(int(index) if role in ("leader", "follower") else fault.number & 1, machine)
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

    def _move(self, index: int, machine: Machine) -> None:
        """The replicas stay the same, in another order."""
        one, image = next((each for each in self._oracle.partitions() if each[0].partition == index), (None, None))
        if one is None or image is None or image.is_reassigning or machine.broker_id not in image.replicas:
            return
        replicas = (machine.broker_id, *(each for each in image.replicas if each != machine.broker_id))
        elect = ElectLeaders(ElectionType.PREFERRED, (one,))
        self._submit(self._controller() or machine, AlterReassignments((Reassignment(*one, replicas),)), elect)

    def _submit(self, machine: Machine, *events: ControllerEvent[Any]) -> None:
        process, broker = machine.process, machine.broker
        if process is None or broker is None or not machine.is_running:
            return

        async def submit() -> None:
            for event in events:
                try:
                    await broker.controller.submit(event)
                except Refused as refusal:
                    self._world.trace.note(machine.host, f"{type(event).__name__} is refused: {refusal.message}")

        self._world.loop.call_soon(lambda: asyncio.ensure_future(submit()), context=process.context)


def broker_ids(count: int) -> list[BrokerId]:
    return [BrokerId(number) for number in range(1, count + 1)]
