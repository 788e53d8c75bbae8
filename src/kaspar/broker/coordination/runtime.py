"""All shards of one coordinator on this broker: one for each partition of its internal topic that this broker leads.

A shard is loaded when leadership begins, in a thread, and asked from then on; it is given up when leadership ends, or
begins anew in another epoch. A request for a key whose partition is not led here, or not loaded yet, is answered so
(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS), and its client asks elsewhere or again: never with what only looks
like the state.
"""

import asyncio
import contextlib
import functools
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.base.log import get_log
from kaspar.broker.coordination.active_shard import ActiveShard, Decide, DecideOne, Question, Wait
from kaspar.broker.coordination.internal_topics import InternalTopic
from kaspar.broker.coordination.loading import LoadCancelled, ShardLoader
from kaspar.broker.coordination.tickets import Answer, Refusal, RequestTicket
from kaspar.coordination import Action, Decision, Now, Shard, partition_for
from kaspar.metadata.events import CreateTopics
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

S = TypeVar("S", bound=Shard)

REMEMBERED_KEYS: Final = 1 << 14
"""For so many keys it is remembered which partition they belong to: Java's hash takes longer than a heartbeat."""

RETRY_LOAD_S: Final = 1.0
RETRY_LOAD_AT_MOST_S: Final = 30.0


class LoadTimes:
    """How long partitions took to load, of the last WINDOW_S seconds."""

    WINDOW_S: Final = 30.0
    AT_MOST: Final = 1000

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loads: deque[tuple[float, float]] = deque(maxlen=self.AT_MOST)

    def loaded(self, seconds: float) -> None:
        self._loads.append((self._clock.monotonic(), seconds))

    def recent_ms(self) -> list[float]:
        """From any thread."""
        since = self._clock.monotonic() - self.WINDOW_S
        return [seconds * 1000 for at, seconds in tuple(self._loads) if at >= since]


class _Loading:
    __slots__ = ("_cancelled", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._cancelled = asyncio.Event()

    @property
    def index(self) -> int:
        return self.partition.topic_partition.partition

    @property
    def cancelled(self) -> bool:
        """From any thread."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    async def pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._cancelled.wait(), seconds)


class Runtime(Generic[S]):
    def __init__(
        self,
        broker: "Broker",
        topic: InternalTopic,
        new_shard: Callable[[int, int], S],
        perform: Callable[[int, Action], None],
        activated: Callable[[int], None] = lambda partition: None,
    ) -> None:
        """`new_shard` is called with partition and leader epoch, `perform` with partition and action. `activated` is
        told when a shard is loaded: what it was told before it was active it has not heard.
        """
        self.topic = topic
        self.load_times = LoadTimes(broker.clock)
        self._broker = broker
        self._new_shard = new_shard
        self._perform = perform
        self._activated = activated
        self._active: dict[int, ActiveShard[S]] = {}
        self._loading: dict[int, _Loading] = {}
        self._loads: set[asyncio.Task[None]] = set()
        self._creating: asyncio.Task[None] | None = None
        self._stopped = False
        self._partition_count = 0
        self._set_partition_count(topic.num_partitions)

    # -- requests ------------------------------------------------------------------------------------------------------

    def submit(self, key: str, decide: Decide[S], refused: Refusal) -> Answer:
        """The answer to a request that may change something, or what to wait for."""
        active = self._active.get(self.partition_of(key))
        if active is None:
            return refused(self._why_not_active(self.partition_of(key)))
        return active.submit(decide, refused)

    def try_at_once(self, key: str, decide: DecideOne[S]) -> bool:
        """Carry out what comes to one record and no more, if nothing stands in its way. False: `submit` it."""
        active = self._active.get(self.partition_of(key))
        return active is not None and active.try_at_once(decide)

    def wait_at_once(self, key: str, wait: Wait[S], refused: Refusal) -> RequestTicket | None:
        """Carry out what comes to waiting and no more, if nothing stands in its way. None: `submit` it."""
        active = self._active.get(self.partition_of(key))
        return None if active is None else active.wait_at_once(wait, refused)

    def ask(self, key: str, question: Question[S], refused: Refusal) -> Answer:
        """The answer to a question, once all that the shard knows is committed."""
        active = self._active.get(self.partition_of(key))
        if active is None:
            return refused(self._why_not_active(self.partition_of(key)))
        return active.ask(question, refused)

    def run(self, partition: int, decide: Callable[[S, Now], Decision]) -> None:
        """An event that nobody waits for. Where the shard is not active it is dropped: loading brings the state up."""
        active = self._active.get(partition)
        if active is not None:
            active.run(decide)

    def marker_written(self, partition: int, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """A marker has just been appended to this partition. A shard that is being loaded will find it in the log."""
        active = self._active.get(partition)
        if active is not None:
            active.replay_marker(producer, committed=committed)

    # -- shards --------------------------------------------------------------------------------------------------------

    def shard_of(self, key: str) -> S:
        """The shard that knows this key. Refused where this broker does not coordinate it, or not yet."""
        active = self._active.get(self.partition_of(key))
        if active is None:
            raise self._refusal(self.partition_of(key))
        return active.shard

    def settled_shard_of(self, key: str) -> S | None:
        """The same, if nothing is under way there and all that it knows is committed: it may be told at once."""
        active = self._active.get(self.partition_of(key))
        return active.shard if active is not None and active.is_settled else None

    def check_active(self, partition: int) -> None:
        """Refused where this broker does not coordinate the partition, or not yet."""
        if partition not in self._active:
            raise self._refusal(partition)

    def active_shards(self) -> dict[int, S]:
        """The shards of this broker by partition. Those that are being loaded are not among them. From any thread."""
        return {partition: active.shard for partition, active in tuple(self._active.items())}

    @property
    def loading_count(self) -> int:
        """How many partitions of this broker cannot be asked yet, because they are being loaded."""
        return len(self._loading)

    @property
    def waiting_count(self) -> int:
        """How many requests wait for an answer."""
        return sum(len(active.waiting) for active in list(self._active.values()))

    def _why_not_active(self, partition: int) -> ErrorCode:
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def _refusal(self, partition: int) -> Refused:
        code = self._why_not_active(partition)
        what = "is loading" if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else "does not lead"
        return Refused(code, f"this broker {what} {self.topic.name}-{partition}")

    # -- leadership ----------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Take up the shards of the partitions that this broker leads now, and give up all others."""
        if self._stopped:
            return
        image = self._broker.image.topics.get(self.topic.name)
        self._set_partition_count(len(image.partitions) if image is not None else self.topic.num_partitions)
        led = self._led()
        for index, active in tuple(self._active.items()):
            if not _is_same(active.partition, active.leader_epoch, led.get(index)):
                self._give_up(index)
        for index, loading in tuple(self._loading.items()):
            if led.get(index) is not loading.partition:
                loading.cancel()
                del self._loading[index]
        for index, partition in led.items():
            if index not in self._active and index not in self._loading:
                self._take_up(index, partition)

    def _led(self) -> dict[int, Partition]:
        hosted = self._broker.partitions.by_name.get(self.topic.name)
        if hosted is None:
            return {}
        return {
            index: partition
            for index, partition in hosted.partitions.items()
            if partition.state.role is Role.LEADER and not partition.offline
        }

    def _take_up(self, index: int, partition: Partition) -> None:
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._activate(partition, self._new_shard(index, partition.state.leadership.leader_epoch))
            return
        loading = self._loading[index] = _Loading(partition)
        task = asyncio.get_running_loop().create_task(self._load(loading), name=f"load of {partition.topic_partition}")
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    async def _load(self, loading: _Loading) -> None:
        """A bug met by one attempt may not be met by the next (memory is short, files are out): as long as the
        partition is ours to load, its clients are told to come again, so it must be loaded some time.
        """
        pause_s = RETRY_LOAD_S
        while not await self._try_to_load(loading):
            await loading.pause(pause_s)
            pause_s = min(2 * pause_s, RETRY_LOAD_AT_MOST_S)
            if loading.cancelled:
                return

    async def _try_to_load(self, loading: _Loading) -> bool:
        """Load it; whether there is nothing more to load here."""
        try:
            await self._load_or_raise(loading)
        except LoadCancelled:
            return True
        except StorageFailure as failure:
            self._broker.log_directory_failed(failure)
            return True
        except Exception as problem:  # the edge of the task
            log.exception("a coordinator could not be loaded", partition=loading.partition.topic_partition)
            self._broker.request_failed(problem)
            return self._loading.get(loading.index) is not loading
        return True

    async def _load_or_raise(self, loading: _Loading) -> None:
        partition, index = loading.partition, loading.index
        leader_epoch = partition.state.leadership.leader_epoch
        started = time.perf_counter()
        shard = self._new_shard(index, leader_epoch)
        loader = ShardLoader(
            shard, partition.log, piece_bytes=self.topic.load_buffer_size, cancelled=lambda: loading.cancelled
        )
        if partition.log.cold:  # it is as good as certain to be appended to
            partition.log.warm_up(await self._broker.run_loading(partition.log.read_cold))
        while loader.position < (end := partition.log.log_end_offset):  # markers may come meanwhile
            await self._broker.run_loading(loader.load_up_to, end)
            if loading.cancelled:
                return
        seconds = time.perf_counter() - started
        log.info(
            "loaded a coordinator's partition",
            partition=partition.topic_partition,
            leader_epoch=leader_epoch,
            records=loader.records,
            bytes=loader.bytes,
            unknown=loader.unknown,
            damaged=loader.damaged,
            seconds=round(seconds, 3),
        )
        self.load_times.loaded(seconds)
        del self._loading[index]
        if leader_epoch == partition.state.leadership.leader_epoch:
            self._activate(partition, shard)
        else:
            self._take_up(index, partition)

    def _activate(self, partition: Partition, shard: S) -> None:
        active = ActiveShard(
            self._broker,
            partition,
            shard,
            codec=self.topic.codec,
            write_timeout_ms=self.topic.write_timeout_ms,
            perform=self._perform,
        )
        self._active[active.index] = active
        active.run(lambda shard, now: shard.loaded(now))
        self._activated(active.index)

    def _give_up(self, index: int, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        active = self._active.pop(index)
        active.give_up(code)
        log.debug("gave up a coordinator's partition", partition=active.partition.topic_partition)

    async def stop(self) -> None:
        """The broker stops: whoever waits is told to look for another coordinator. Safe to call twice."""
        self._stopped = True
        for loading in self._loading.values():
            loading.cancel()
        self._loading.clear()
        for index in tuple(self._active):
            self._give_up(index)
        if self._loads:
            await asyncio.wait(self._loads)

    # -- the topic -----------------------------------------------------------------------------------------------------

    def _set_partition_count(self, count: int) -> None:
        if count != self._partition_count:
            self._partition_count = count
            self.partition_of = functools.lru_cache(REMEMBERED_KEYS)(functools.partial(_partition_of, count))

    async def ensure_topic(self) -> None:
        """Make the internal topic if it is not there. Refused (COORDINATOR_NOT_AVAILABLE) where it cannot be made."""
        if self.topic.name in self._broker.image.topics:
            return
        if self._creating is None:
            self._creating = asyncio.get_running_loop().create_task(self._create_topic())
            self._creating.add_done_callback(self._created)
        await asyncio.shield(self._creating)

    async def _create_topic(self) -> None:
        broker = self._broker
        wanted = self.topic.to_create(len(broker.image.brokers))
        try:
            (created,) = await broker.controller.submit(CreateTopics((wanted,)))
        except Refused as refusal:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message) from refusal
        if created.outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.warning("an internal topic could not be created", topic=self.topic.name, reason=created.outcome.message)
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, created.outcome.message or created.outcome.error.name)

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating = None
        if not task.cancelled():
            task.exception()  # whoever asked has been told


AnyRuntime: TypeAlias = Runtime[Any]


def _partition_of(count: int, key: str) -> int:
    return partition_for(key, count)


def _is_same(partition: Partition, leader_epoch: int, led: Partition | None) -> bool:
    return led is partition and led.state.leadership.leader_epoch == leader_epoch
