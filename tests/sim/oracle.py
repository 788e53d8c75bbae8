"""What must hold in every simulated cluster, and the knowledge that it takes to check it.

It knows what clients were told: records that were acknowledged with acks=all, and records that were read. All of these
are committed. It also knows what the metadata store holds, and looks into the logs and states of running brokers.

Rules:
- An offset that a client knows to be committed never names another record.
- Every leader of a later epoch has all committed records; so has every in-sync and every eligible replica, unless it
  crashed and the controller has not heard of it yet.
- A leader epoch has one leader, a controller epoch one controller, and no controller writes after the next one has.
- A high watermark never goes back under one leader.
- What a broker knows of a partition has been stored, and never gets older.
- A partition's state changes by the rules of elections: its epochs grow, its leader is in sync and was in sync or
  eligible before, and the last in-sync replica is not given up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kaspar.metadata.layout import broker_nodes, json_values, store_paths, topic_nodes
from kaspar.metadata.store import Create, Operation, Put
from kaspar.records import iter_batch, iter_headers
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Log
from tests.sim.machines import Machine, World
from tests.sim.virtual_loop import Process

LOOK_EVERY_S = 0.05


class Violation(Exception):
    """A rule was broken. Its message says which, and how."""


@dataclass(slots=True)
class LogCopy:
    """The records of one log, by offset, read as far as it has grown."""

    log: Log
    values: list[bytes] = field(default_factory=list)
    truncations: int = -1
    checked: int = 0
    """How many of the committed records were found in it."""

    def refresh(self) -> bool:
        """Whether the log was truncated since the last look. Raises Violation if it cannot be read."""
        log = self.log
        truncated = log.local.truncations != self.truncations or len(self.values) > log.log_end_offset
        if truncated:
            self.truncations, self.checked = log.local.truncations, 0
            self.values.clear()
        while len(self.values) < log.log_end_offset:
            before = len(self.values)
            try:
                self._read_on()
            except KasparError as problem:
                raise Violation(f"{log.topic_partition}: the log cannot be read at {before}: {problem}") from problem
            if len(self.values) == before:
                raise Violation(f"{log.topic_partition}: the log has a gap at {before}")
        return truncated

    def _read_on(self) -> None:
        found = memoryview(bytes(self.log.read(len(self.values), 1 << 20, self.log.log_end_offset)))
        for at, header in iter_headers(found, 0, len(found)):
            for record in iter_batch(found, at, header):
                if record.offset == len(self.values):
                    self.values.append(record.value or b"")


class Oracle:
    def __init__(self, world: World, *, has_elr: bool) -> None:
        self.known: dict[TopicPartition, dict[int, bytes]] = {}
        """What clients know to be committed, by offset."""
        self.topics: dict[str, TopicImage] = {}
        """As the metadata store has them."""
        self.changes = 0
        self._world = world
        self._has_elr = has_elr
        self._told: dict[tuple[TopicPartition, int], str] = {}
        self._copies: dict[tuple[Process, TopicPartition], LogCopy] = {}
        self._leaders: dict[tuple[TopicPartition, int], BrokerId] = {}
        self._stored: dict[tuple[TopicPartition, int], Decided] = {}
        """Every state of a partition that the store has had, by partition epoch."""
        self._obeyed: dict[tuple[Process, TopicPartition], tuple[int, int]] = {}
        """The leader epoch and partition epoch that each process acts by."""
        self._newest_leader: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[tuple[Process, TopicPartition], tuple[int, int]] = {}
        self._controllers: dict[int, Process] = {}
        self._next_look = 0.0
        self._is_due = False
        self.violation: str | None = None
        self.is_void = False
        """Whether nothing is promised any more."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the store has another state of a partition, or another registration."""

    def violated(self, sentence: str) -> None:
        if self.violation is None and not self.is_void:
            self.violation = sentence
            self._world.trace.note("oracle", f"VIOLATION: {sentence}")

    # -- what clients are told ---------------------------------------------------------------------------------------

    def acknowledged(self, client: str, partition: TopicPartition, base_offset: int, values: Sequence[bytes]) -> None:
        if base_offset < 0:
            self.violated(f"{partition}: {client} got an acknowledgement without an offset")
            return
        self._world.trace.note(
            client, f"{partition}@{base_offset} is acknowledged: {values[0].decode()} +{len(values)}"
        )
        for number, value in enumerate(values):
            self._is_committed(f"acknowledged to {client}", partition, base_offset + number, value)
        self._is_due = True

    def read(self, client: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        self._is_committed(f"read by {client}", partition, offset, value)

    def _is_committed(self, how: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        known = self.known.setdefault(partition, {})
        before = known.setdefault(offset, value)
        told = self._told.setdefault((partition, offset), how)
        if before != value:
            self.violated(f"{partition}@{offset} is {value.decode()} ({how}), and was {before.decode()} ({told})")

    # -- the metadata store ------------------------------------------------------------------------------------------

    def stored(self, process: Process | None, operations: Sequence[Operation]) -> None:
        """A transaction is committed."""
        fence = next((each for each in operations if isinstance(each, Put) and each.path == store_paths.FENCE), None)
        if fence is not None:
            epoch = json_values.decode(fence.value)["epoch"]
            if self._controllers and epoch < max(self._controllers):
                self.violated(f"{process} writes in controller epoch {epoch}, after {max(self._controllers)}")
            if process is not None and self._controllers.setdefault(epoch, process) is not process:
                self.violated(f"{process} and {self._controllers[epoch]} both control in epoch {epoch}")
        for operation in operations:
            if operation.path.startswith(f"{store_paths.TOPICS}/"):
                if fence is None:
                    self.violated(f"{process} changes {operation.path} without the fence")
                self._topic_changed(operation.path.removeprefix(f"{store_paths.TOPICS}/"))
            elif isinstance(operation, Create) and operation.path.startswith(f"{store_paths.BROKER_IDS}/"):
                self.on_change()
            elif isinstance(operation, Put) and operation.path == store_paths.BROKER_EPOCHS:
                self._brokers_seen(broker_nodes.decode_epochs(operation.value)[0])

    def _topic_changed(self, name: str) -> None:
        stored = self._world.ensemble.find(topic_nodes.topic_path(name))
        if stored is None:
            return
        topic, before = topic_nodes.decode_topic(name, [stored.value]), self.topics.get(name)
        self.topics[name] = topic
        self._is_due = True
        for index, partition in enumerate(topic.partitions):
            one = TopicPartition(name, index)
            self._stored[one, partition.partition_epoch] = decided(partition)
            if before is None or before.partitions[index] != partition:
                self.changes += 1
                self._world.trace.note(
                    "store",
                    f"{one}: leader {partition.leader} in {partition.leader_epoch}, isr {list(partition.isr)}, "
                    f"elr {list(partition.elr)}, last {list(partition.last_known_elr)}, version "
                    f"{partition.partition_epoch}, replicas {list(partition.replicas)}",
                )
                if before is not None:
                    self._check_change(one, before.partitions[index], partition)
                self._check_promise(one, partition)
                self.on_change()

    def _check_change(self, one: TopicPartition, old: PartitionImage, new: PartitionImage) -> None:
        same_places = old._replace(directories=new.directories) == new
        if same_places:
            return
        if new.partition_epoch != old.partition_epoch + 1 or new.leader_epoch < old.leader_epoch:
            self.violated(f"{one}: the epochs do not grow from {old} to {new}")
        if new.leader not in (old.leader, NO_LEADER):
            if new.leader_epoch == old.leader_epoch:
                self.violated(f"{one}: another leader in the same epoch: {old} to {new}")
            # What the old leader has asked for may at once move leadership away from it, to one that it has let in.
            expands = set(old.isr) & set(new.replicas) < set(new.isr)
            if new.leader not in members_of(old) and not expands:
                self.violated(f"{one}: the leader was neither in sync nor eligible: {old} to {new}")
        if new.leader != NO_LEADER and new.leader not in new.isr:
            self.violated(f"{one}: the leader is not in sync: {new}")
        if not set(new.isr) <= set(new.replicas) or set(new.isr) & set(new.elr):
            self.violated(f"{one}: in-sync replicas that cannot be: {new}")
        if not new.isr and not (self._has_elr and (new.elr or new.last_known_elr)):
            self.violated(f"{one}: the last in-sync replica was given up: {old} to {new}")

    def _check_promise(self, one: TopicPartition, partition: PartitionImage) -> None:
        """The controller may count on replicas that have just crashed, and give up the others: those it does not reach.
        If it has no other replica left in sync, nothing is promised any more (KIP-966: the last replica standing).
        """
        machines = [self._world.machines[each] for each in members_of(partition)]
        if all(one in each.tainted for each in machines) and any(one in each.lossy for each in machines):
            self._world.trace.note("oracle", f"{one}: no in-sync replica is left that has not crashed")
            self.is_void = True

    def _brokers_seen(self, epochs: Mapping[BrokerId, int]) -> None:
        """The controller has seen these registrations, and drawn its conclusions before."""
        for machine in self._world.machines.values():
            if epochs.get(machine.broker_id, -1) > machine.crashed_after:
                machine.tainted.clear()
                machine.lossy.clear()

    # -- crashes that cost nothing that was promised -----------------------------------------------------------------

    def may_crash(self, machine: Machine, *, power: bool) -> bool:
        """Whether committed records survive it, by what is promised: as long as one in-sync replica lives. After a
        crash without loss all is still there, if the same is true of every other in-sync replica.
        """
        for one, partition in self.partitions():
            members = members_of(partition)
            if machine.broker_id not in members:
                continue
            machines = [self._world.machines[each] for each in members]
            others_live = any(one not in each.tainted for each in machines if each is not machine)
            if not others_live and (power or any(one in each.lossy for each in machines)):
                return False
        return True

    def crashed(self, machine: Machine, *, power: bool) -> None:
        machine.crashed_after = self._world.ensemble.last_transaction
        for one, partition in self.partitions():
            if machine.broker_id in partition.replicas:
                machine.tainted.add(one)
                if power:
                    machine.lossy.add(one)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        for name, topic in self.topics.items():
            for index, partition in enumerate(topic.partitions):
                yield TopicPartition(name, index), partition

    def partition(self, index: int) -> PartitionImage | None:
        """Of the only topic."""
        return next((image for one, image in self.partitions() if one.partition == index), None)

    # -- brokers -----------------------------------------------------------------------------------------------------

    def role_decided(self, machine: Machine, process: Process, partition: Partition) -> None:
        """A broker leads or follows."""
        state, one = partition.state, partition.topic_partition
        self._check_obeyed(machine, process, partition)
        if state.role is not Role.LEADER:
            return
        epoch = state.leadership.leader_epoch
        if self._leaders.setdefault((one, epoch), machine.broker_id) != machine.broker_id:
            self.violated(f"{one}: {machine.host} and b{self._leaders[one, epoch]} both lead in epoch {epoch}")
        self._newest_leader[one] = max(epoch, self._newest_leader.get(one, -1))
        self._is_due = True

    def _check_obeyed(self, machine: Machine, process: Process, partition: Partition) -> None:
        known, one = partition.state.leadership, partition.topic_partition
        if known.partition_epoch < 0:
            return
        by = (known.leader, known.leader_epoch, known.replicas, known.in_sync_replicas)
        if self._stored.get((one, known.partition_epoch)) != by:
            self.violated(f"{one}: {machine.host} acts by what was never stored: {known}")
        epochs = (known.leader_epoch, known.partition_epoch)
        if epochs < self._obeyed.get((process, one), epochs):
            self.violated(f"{one}: {machine.host} acts by an older state than before: {known}")
        self._obeyed[process, one] = epochs

    def look(self, now: float) -> None:
        """Called whenever time moves on."""
        if not self._is_due and now < self._next_look:
            return
        self._is_due = False
        self._next_look = now + LOOK_EVERY_S
        for machine in self._world.machines.values():
            process, broker = machine.process, machine.broker
            if process is None or broker is None:
                continue
            for partition in broker.partitions:
                try:
                    self._look_at(machine, process, partition)
                except Violation as broken:
                    self.violated(f"{machine.host}: {broken}")

    def _look_at(self, machine: Machine, process: Process, partition: Partition) -> None:
        state, one = partition.state, partition.topic_partition
        if partition.log.truncating or partition.offline:
            return
        copy = self._copies.get((process, one))
        if copy is None or copy.log is not partition.log:
            copy = self._copies[process, one] = LogCopy(partition.log)
        truncated = copy.refresh()
        if state.high_watermark > len(copy.values):
            self.violated(f"{one}: the high watermark of {machine.host} is beyond its log's end")
        self._check_high_watermark(machine, process, partition, truncated=truncated)
        topic = self.topics.get(one.topic)
        if topic is None:
            return
        leads = state.role is Role.LEADER and state.leadership.leader_epoch == self._newest_leader.get(one)
        is_member = machine.broker_id in members_of(topic.partitions[one.partition]) and one not in machine.tainted
        if leads or is_member:
            self._check_has_all(machine, one, copy, "leads" if leads else "is in sync or eligible")

    def _check_high_watermark(
        self, machine: Machine, process: Process, partition: Partition, *, truncated: bool
    ) -> None:
        state, one = partition.state, partition.topic_partition
        if state.role is not Role.LEADER:
            return
        epoch = state.leadership.leader_epoch
        known_epoch, known = self._high_watermarks.get((process, one), (-1, 0))
        if known_epoch == epoch and state.high_watermark < known and not truncated:
            self.violated(
                f"{one}: the high watermark of {machine.host} went back from {known} to {state.high_watermark} in "
                f"epoch {epoch}"
            )
        self._high_watermarks[process, one] = epoch, state.high_watermark

    def _check_has_all(self, machine: Machine, one: TopicPartition, copy: LogCopy, why: str) -> None:
        known = self.known.get(one)
        if not known or copy.checked == len(known):
            return
        values = copy.values
        for offset, value in list(known.items())[copy.checked :]:
            has = values[offset] if offset < len(values) else None
            if has != value:
                self.violated(
                    f"{one}@{offset} is committed as {value.decode()} ({self._told[one, offset]}), but {machine.host}, "
                    f"which {why}, has {'nothing' if has is None else has.decode()} there"
                )
                return
        copy.checked = len(known)

    # -- the end -----------------------------------------------------------------------------------------------------

    def is_settled(self) -> bool:
        """Whether every partition has a leader, all its replicas are in sync and have the same, and it is committed."""
        return not self.unsettled()

    def unsettled(self) -> str:
        """What keeps the cluster from being settled; empty if nothing does."""
        if not self.topics:
            return "there is no topic"
        for machine in self._world.machines.values():
            if not machine.is_running:
                return f"{machine.host} does not run"
        for one, image in self.partitions():
            if image.leader == NO_LEADER or set(image.isr) != set(image.replicas) or image.is_reassigning:
                return f"{one}: {image}"
            ends = {}
            for replica in image.replicas:
                partition = self._partition(replica, one)
                if partition is None:
                    return f"{one} is not on b{replica}"
                role = Role.LEADER if replica == image.leader else Role.FOLLOWER
                if partition.state.role is not role or partition.state.leadership.leader_epoch != image.leader_epoch:
                    return f"{one}: b{replica} has role {partition.state.role} in {partition.state.leadership}"
                ends[replica] = (partition.log.log_end_offset, partition.high_watermark)
            leader_end = ends[image.leader][0]
            if any(end != (leader_end, leader_end) for end in ends.values()):
                return f"{one}: ends and high watermarks are {ends}"
        return ""

    def _partition(self, broker_id: BrokerId, one: TopicPartition) -> Partition | None:
        broker = self._world.machines[broker_id].broker
        return None if broker is None else broker.partitions.get(one)

    def check_end(self, sent: Callable[[TopicPartition], Sequence[tuple[str, Sequence[bytes]]]]) -> None:
        """Everything is quiet. `sent`: what each idempotent producer of a partition had acknowledged, in order."""
        try:
            self._check_end(sent)
        except Violation as broken:
            self.violated(str(broken))

    def _check_end(self, sent: Callable[[TopicPartition], Sequence[tuple[str, Sequence[bytes]]]]) -> None:
        for one, image in self.partitions():
            contents: dict[BrokerId, list[bytes]] = {}
            raw: dict[BrokerId, bytes] = {}
            for replica in image.replicas:
                partition = self._partition(replica, one)
                assert partition is not None
                copy = LogCopy(partition.log)
                copy.refresh()
                contents[replica] = copy.values
                raw[replica] = bytes(partition.log.read(0, 1 << 24, partition.log.log_end_offset))
            if len(set(raw.values())) > 1:
                self.violated(f"{one}: the replicas differ")
            log = contents[image.leader]
            for name, values in sent(one):
                mine = [value for value in log if value.startswith(f"{name}/".encode())]
                if mine != list(values):
                    lost = sorted(set(values) - set(mine))
                    self.violated(
                        f"{one}: {name} had {len(values)} records acknowledged, and {len(mine)} are there; lost: {lost}"
                    )


Decided = tuple[BrokerId, int, tuple[BrokerId, ...], tuple[BrokerId, ...]]


def decided(partition: PartitionImage) -> Decided:
    """What brokers act by."""
    return partition.leader, partition.leader_epoch, partition.replicas, partition.isr


def members_of(partition: PartitionImage) -> tuple[BrokerId, ...]:
    """The replicas that have every committed record, as far as the controller knows."""
    return (*partition.isr, *partition.elr) or partition.last_known_elr
