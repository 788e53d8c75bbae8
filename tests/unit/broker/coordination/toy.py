"""A coordinator as small as can be: it keeps a text under a name, and can be asked to wait, to refuse and to act."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, ProducerIdAndEpoch
from kaspar.broker.coordination.internal_topics import InternalTopic
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.tickets import RequestTicket
from kaspar.broker.server import Broker
from kaspar.coordination import Action, Decision, Now, Reply, StoredRecord, Ticket, Timer
from kaspar.coordination.record_kinds import RecordKind, RecordKinds
from kaspar.protocol.schema import Field, Message, Schema
from kaspar.records import Codec, iter_batch, iter_headers
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from tests.unit.broker.running import running

ME, OTHER = BrokerId(1), BrokerId(2)
TOPIC = "__toys"
Response = Message | Awaitable[Message]
PRODUCER = ProducerIdAndEpoch(77, 3)


@dataclass(frozen=True, slots=True)
class ToyKey(Message):
    name: str
    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="", fields=(Field("name", "string", "0+"),))


@dataclass(frozen=True, slots=True)
class ToyValue(Message):
    text: str
    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="", fields=(Field("text", "string", "0+"),))


@dataclass(frozen=True, slots=True)
class Said(Message):
    """A response: a text or a code."""

    text: str = ""
    code: ErrorCode = ErrorCode.NONE
    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="", fields=())


def refused(code: ErrorCode) -> Said:
    return Said(code=code)


KINDS = RecordKinds([RecordKind((5,), ToyKey, ToyValue, 0)])


def stored(name: str, text: str | None) -> StoredRecord:
    return StoredRecord(ToyKey(name), None if text is None else ToyValue(text))


class ToyShard:
    """Every method is an event of its kind."""

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.texts: dict[str, str] = {}
        self.pending: dict[int, dict[str, str]] = {}
        self.held: list[Ticket] = []
        self.seen: list[object] = []
        self.fired: list[Hashable] = []

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        return KINDS.decode(key, value)

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        return KINDS.encode(record)

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        assert isinstance(record.key, ToyKey)
        texts = self.texts if producer is None else self.pending.setdefault(producer.producer_id, {})
        if isinstance(record.value, ToyValue):
            texts[record.key.name] = record.value.text
        else:
            texts.pop(record.key.name, None)

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        record = self.decode(key, value)
        if record is not None:
            self.replay(record, producer)
        return record is not None

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        ended = self.pending.pop(producer.producer_id, {})
        if committed:
            self.texts |= ended

    def loaded(self, now: Now) -> Decision:
        self.seen.append("loaded")
        return Decision()

    def timer_fired(self, key: Hashable, now: Now) -> Decision:
        self.fired.append(key)
        return Decision()

    def put(self, now: Now, producer: ProducerIdAndEpoch | None = None, /, **texts: str) -> Decision:
        records = [stored(name, text) for name, text in texts.items()]
        return Decision(records, Said("done"), producer=producer)

    def get(self, name: str) -> Said:
        return Said(self.texts.get(name, ""))

    def hold(self, ticket: Ticket) -> Decision:
        self.held.append(ticket)
        return Decision()

    def release(self) -> Decision:
        held, self.held = self.held, []
        return Decision(replies=[Reply(ticket, Said("released")) for ticket in held])

    def refuse(self) -> Decision:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "nobody knows you")

    def set_timer(self, key: Hashable, at_ms: int | None) -> Decision:
        return Decision(timers=[Timer(key, at_ms)])


class Toys:
    """The runtime of toy shards on a broker, with one internal topic of two partitions."""

    def __init__(self, broker: Broker, **changes: Any) -> None:
        self.broker = broker
        self.actions: list[tuple[int, Action]] = []
        self.perform: Callable[[int, Action], None] = lambda partition, action: self.actions.append((partition, action))
        settings: dict[str, Any] = {
            "name": TOPIC,
            "num_partitions": 2,
            "replication_factor": 1,
            "configs": (("cleanup.policy", "compact"), *changes.pop("configs", ())),
            "codec": Codec.NONE,
            "load_buffer_size": 4096,
            "write_timeout_ms": 5000,
            **changes,
        }
        self.runtime: Runtime[ToyShard] = Runtime(
            broker.coordinators.services,
            InternalTopic(**settings),
            ToyShard,
            lambda partition, action: self.perform(partition, action),
        )

    @property
    def shard(self) -> ToyShard:
        return self.runtime.shard_of("a")

    @property
    def partition(self) -> Partition:
        """The one that the key "a" belongs to."""
        return self.broker.partitions.by_name[TOPIC].partitions[self.runtime.partition_of("a")]

    def submit(self, decide: Callable[[ToyShard, Now], Decision], key: str = "a") -> Response:
        return self.runtime.submit(key, decide, refused)

    def hold(self) -> Response:
        """A request that waits until the shard releases it."""
        ticket = RequestTicket(refused)
        return self.runtime.submit_with_ticket("a", lambda shard, now: shard.hold(ticket), ticket)

    def put(self, **texts: str) -> Response:
        return self.submit(lambda shard, now: shard.put(now, **texts))

    def ask(self, name: str) -> Response:
        return self.runtime.ask("a", lambda shard, now: shard.get(name), refused)

    def verify(self, producer: ProducerIdAndEpoch) -> None:
        """A transaction's coordinator knows that this producer writes to the partition of the key "a"."""
        producers = self.partition.log.producers
        asked = producers.begin_verification(*producer, 0, transactional_id="t-id", bumps_epoch=True, now_ms=0)
        assert asked is not None
        producers.confirm(producer.producer_id, asked)

    def elect(self, *in_sync: BrokerId, epoch: int = 0, leader: BrokerId = ME) -> None:
        """The controller decides about the partition of the key "a"."""
        before = self.partition.state.leadership
        self.partition.lead_or_follow(
            Leadership(leader, LeaderEpoch(epoch), before.partition_epoch + 1, (ME, OTHER), in_sync)
        )
        self.runtime.follow()


@contextlib.asynccontextmanager
async def toys(folder: Path, *, broker_settings: dict[str, str] | None = None, **changes: Any) -> AsyncIterator[Toys]:
    async with running(folder, **(broker_settings or {})) as broker:
        made = Toys(broker, **changes)
        await made.runtime.ensure_topic()
        made.runtime.follow()
        try:
            yield made
        finally:
            await made.runtime.stop()


def texts_in(partition: Partition) -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    """Each batch of the log: its size in records, and what they say."""
    log = partition.log
    data = memoryview(log.read(log.log_start_offset, 1 << 20, log.log_end_offset)) if log.log_end_offset else b""
    for position, header in iter_headers(data, 0, len(data)):
        said = []
        for record in iter_batch(data, position, header):
            assert record.key is not None
            decoded = KINDS.decode(record.key, record.value)
            assert decoded is not None
            assert isinstance(decoded.key, ToyKey)
            said.append((decoded.key.name, decoded.value.text if isinstance(decoded.value, ToyValue) else None))
        yield header.count, said
