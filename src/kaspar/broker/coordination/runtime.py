"""The shards of one coordinator on this broker: one for each partition of its internal topic that this broker leads.

A shard is loaded in a thread when leadership begins, and serves requests from then on. It is given up when leadership
ends, or begins again in another epoch. A request for a key whose partition is not led here, or not loaded yet, is
refused (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS): no response comes from incomplete state. Nor from state that
may be outdated: loading ends when all that the shard has replayed is committed, and a broker that is out of touch with
the controller refuses all requests, even those that only read, because another broker may be the coordinator by then.
"""

import asyncio
import contextlib
import functools
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, ProducerIdAndEpoch
from kaspar.base.log import get_log
from kaspar.broker.coordination.active_shard import ActiveShard, Decide, Question
from kaspar.broker.coordination.internal_topics import InternalTopic
from kaspar.broker.coordination.loading import LoadCancelled, ShardLoader
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.tickets import Refusal, RequestTicket, Response
from kaspar.controller.events import CreateTopics
from kaspar.coordination import Action, Shard, partition_for
from kaspar.protocol.schema import Message
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

log = get_log(__name__)

S = TypeVar("S", bound=Shard)

REMEMBERED_KEYS: Final = 1 << 14
"""How many keys the partition is cached for, because Java's hash takes longer than a heartbeat."""

RETRY_LOAD_S: Final = 1.0
RETRY_LOAD_AT_MOST_S: Final = 30.0
BETWEEN_LOOKS_S: Final = 0.05


class LoadTimes:
    """How long the loads of partitions took in the last WINDOW_S seconds."""

    WINDOW_S: Final = 30.0
    AT_MOST: Final = 1000

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loads: deque[tuple[float, float]] = deque(maxlen=self.AT_MOST)

    def loaded(self, seconds: float) -> None:
        self._loads.append((self._clock.monotonic(), seconds))

    def recent_ms(self) -> list[float]:
        """For any thread."""
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
        """For any thread."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    async def pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._cancelled.wait(), seconds)

    async def committed(self, end: int) -> bool:
        """Wait until everything before that offset is committed. Returns whether it is. A replica that has become the
        leader may have records that its predecessor never reported as committed. Ends early if the load is cancelled.
        If this broker does not lead the partition, it ends after a pause: the load is about to be cancelled, or the
        broker will lead again.
        """
        partition, woken = self.partition, asyncio.Event()
        if partition.high_watermark < end:
            if partition.state.role is Role.LEADER:
                partition.when_committed(Offset(end), woken.set)
                await self._either(woken)
            else:
                await self.pause(BETWEEN_LOOKS_S)
        return partition.high_watermark >= end

    async def _either(self, woken: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (woken, self._cancelled)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


class Runtime(Generic[S]):
    def __init__(
        self,
        services: CoordinatorServices,
        topic: InternalTopic,
        new_shard: Callable[[int, int], S],
        perform: Callable[[int, Action], None],
        activated: Callable[[int], None] = lambda partition: None,
    ) -> None:
        """`new_shard` is called with partition and leader epoch, `perform` with partition and action. `activated` is
        called when a shard is loaded; earlier events have not reached the shard.
        """
        self.topic = topic
        self.load_times = LoadTimes(services.clock)
        self._services = services
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

    def submit(self, key: str, decide: Decide[S], refused: Refusal) -> Response:
        """The response to a request that may change something, or the ticket on which it waits."""
        active = self._active_for(key)
        if active is None:
            return refused(self._why_not_active(self.partition_of(key)))
        return active.submit(decide, refused)

    def submit_with_ticket(self, key: str, decide: Decide[S], ticket: RequestTicket) -> Response:
        """Submit a request that may have to wait for other requests: `decide` gives its ticket to the shard."""
        active = self._active_for(key)
        if active is None:
            return ticket.refused(self._why_not_active(self.partition_of(key)))
        return active.submit(decide, ticket.refused, ticket)

    def try_now(self, key: str, decide: Decide[S]) -> Message | None:
        """Carry out a request if its response is ready at once. None: nothing has changed, and the caller uses
        `submit`.
        """
        active = self._active_for(key)
        return None if active is None else active.try_now(decide)

    def ask(self, key: str, question: Question[S], refused: Refusal) -> Response:
        """The response to a question, once everything that the shard has replayed is committed."""
        active = self._active_for(key)
        if active is None:
            return refused(self._why_not_active(self.partition_of(key)))
        return active.ask(question, refused)

    def run(self, partition: int, decide: Decide[S]) -> None:
        """Process an event of the coordinator itself. Dropped if the shard is not active: it will be up to date once it
        is loaded.
        """
        active = self._active.get(partition)
        if active is not None:
            active.run(decide)

    def marker_written(self, partition: int, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Replay a marker that was just appended to this partition. A shard that is being loaded reads it later."""
        active = self._active.get(partition)
        if active is not None:
            active.replay_marker(producer, committed=committed)

    # -- shards --------------------------------------------------------------------------------------------------------

    def shard_of(self, key: str) -> S:
        """The shard that has this key. Raises Refused if this broker does not coordinate it, or not yet."""
        active = self._active_for(key)
        if active is None:
            raise self._refusal(self.partition_of(key))
        return active.shard

    def check_active(self, partition: int) -> None:
        """Raises Refused if this broker does not coordinate the partition, or not yet."""
        if partition not in self._active or not self._services.in_touch():
            raise self._refusal(partition)

    def is_active(self, partition: int) -> bool:
        """Whether this broker coordinates the partition as far as it knows, in touch with the controller or not."""
        return partition in self._active

    def why_not_listed(self) -> ErrorCode:
        """NONE if everything that this broker coordinates can be listed now, otherwise an error."""
        if not self._services.in_touch():
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._loading else ErrorCode.NONE

    def active_shards(self) -> dict[int, S]:
        """The shards of this broker by partition, without those that are being loaded. For any thread."""
        return {partition: active.shard for partition, active in tuple(self._active.items())}

    @property
    def loading_count(self) -> int:
        """The number of partitions of this broker that are being loaded, and serve no requests yet."""
        return len(self._loading)

    @property
    def waiting_count(self) -> int:
        """The number of requests that wait for their response."""
        return sum(len(active.waiting) for active in list(self._active.values()))

    def _active_for(self, key: str) -> ActiveShard[S] | None:
        return self._active.get(self.partition_of(key)) if self._services.in_touch() else None

    def _why_not_active(self, partition: int) -> ErrorCode:
        if partition in self._loading and self._services.in_touch():
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def _refusal(self, partition: int) -> Refused:
        code = self._why_not_active(partition)
        what = "is loading" if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else "does not lead"
        return Refused(code, f"This broker {what} {self.topic.name}-{partition}.")

    # -- leadership ----------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Load the shards of the partitions that this broker leads now, and give up all others."""
        if self._stopped:
            return
        image = self._services.images.current.topics.get(self.topic.name)
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
        hosted = self._services.partitions.by_name.get(self.topic.name)
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
        """Load a partition, with retries as long as this broker leads it, because clients retry as well. Even after a
        bug the next attempt may succeed (memory or files were short, or the log has moved to another directory).
        """
        pause_s = RETRY_LOAD_S
        while not await self._try_to_load(loading):
            await loading.pause(pause_s)
            pause_s = min(2 * pause_s, RETRY_LOAD_AT_MOST_S)
            if loading.cancelled:
                return

    async def _try_to_load(self, loading: _Loading) -> bool:
        """Try to load. Returns whether the load is over."""
        try:
            await self._load_or_raise(loading)
        except LoadCancelled:
            return loading.cancelled
        except StorageFailure as failure:
            self._services.failures.log_directory_failed(failure)
            # Normally true by now, unless the log has moved away from that directory in the meantime.
            return loading.cancelled
        except Exception as problem:  # the edge of the task
            log.exception("a coordinator could not be loaded", partition=loading.partition.topic_partition)
            self._services.failures.on_bug(problem)
            return self._loading.get(loading.index) is not loading
        return True

    async def _load_or_raise(self, loading: _Loading) -> None:
        partition, index = loading.partition, loading.index
        leader_epoch = partition.state.leadership.leader_epoch
        started = time.perf_counter()
        shard = self._new_shard(index, leader_epoch)
        loader = ShardLoader(
            shard,
            lambda: partition.log,
            piece_bytes=self.topic.load_buffer_size,
            cancelled=lambda: loading.cancelled,
        )
        if partition.log.cold:  # it is practically certain that records will be appended
            partition.log.warm_up(await self._services.threads.run_loading(partition.log.read_cold))
        is_committed = False
        while not is_committed or loader.position < partition.log.log_end_offset:  # markers may be appended meanwhile
            await self._services.threads.run_loading(loader.load_up_to, partition.log.log_end_offset)
            if not is_committed:
                is_committed = await loading.committed(loader.position)
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
            self._services,
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
        log.debug("unloaded a coordinator's partition", partition=active.partition.topic_partition)

    async def stop(self) -> None:
        """Refuse the waiting requests with NOT_COORDINATOR, and stop. Safe to call twice."""
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
        """Create the internal topic if it does not exist. Raises Refused (COORDINATOR_NOT_AVAILABLE) if that fails."""
        if self.topic.name in self._services.images.current.topics:
            return
        if self._creating is None:
            self._creating = asyncio.get_running_loop().create_task(self._create_topic())
            self._creating.add_done_callback(self._created)
        await asyncio.shield(self._creating)

    async def _create_topic(self) -> None:
        services = self._services
        wanted = self.topic.to_create(len(services.images.current.brokers), is_clustered=services.is_clustered)
        try:
            (created,) = await services.controller.submit(CreateTopics((wanted,)))
        except Refused as refusal:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message) from refusal
        if created.outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.warning("an internal topic could not be created", topic=self.topic.name, reason=created.outcome.message)
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, created.outcome.message or created.outcome.error.name)

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating = None
        if not task.cancelled():
            task.exception()  # marks it as retrieved; the callers get it


AnyRuntime: TypeAlias = Runtime[Any]


def _partition_of(count: int, key: str) -> int:
    return partition_for(key, count)


def _is_same(partition: Partition, leader_epoch: int, led: Partition | None) -> bool:
    return led is partition and led.state.leadership.leader_epoch == leader_epoch
