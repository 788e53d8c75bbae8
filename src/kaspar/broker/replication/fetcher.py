"""Copies partitions from one leader: Kafka's ReplicaFetcherThread, as a task on the event loop.

Its decisions are in replication/fetches.py. A turn truncates logs in a thread where necessary, looks up the leader's
offsets for partitions that are out of range, then fetches, and appends the same bytes that the leader has.

Rules:
- Once `settled` has returned, a removed partition is no longer touched; before, a thread may be truncating its log.
- With `flush.messages=1` a follower fetches more only when its records are synced, because a fetch tells the leader
  that it has them. That includes records from before it followed this leader, and records whose sync has to be
  repeated.
- Large responses are checked in threads, and appended in several turns of the event loop.
"""

import asyncio
import contextlib
import functools
from collections.abc import Iterable, Mapping
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes, Refused, StorageFailure
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.base.log import get_log
from kaspar.base.metrics import RecentRate
from kaspar.broker.replication.requests import FetchedPartition, fetch_request, fetched_partitions, look_up
from kaspar.broker.replication.services import FetcherServices
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.core import UnsupportedByPeer
from kaspar.config.kinds import MAX_LONG
from kaspar.protocol.messages.fetch import FetchResponse
from kaspar.records.layout import LENGTH_AT, LENGTH_OVERHEAD
from kaspar.replication.fetch_session import ENDED_SESSION, FollowerFetchSession
from kaspar.replication.fetches import FIRST_DELAY_MS, LeaderFetches, PartitionFetch, PartitionKey, Verdict
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import FetchedBatches, UnexpectedAppendOffset

log = get_log(__name__)

CHECKED_INLINE_BYTES: Final = 256 * 1024
"""The checksums of more than this are computed in a thread, unless there are only few batches."""
FEW_BATCHES: Final = 64
FEW_BATCHES_INLINE_BYTES: Final = 2 * 1024 * 1024
"""Takes a tenth of a millisecond, half as long as the way to a thread and back on an idle machine."""
APPENDED_AT_ONCE_BYTES: Final = 1024 * 1024
PARTITIONS_AT_ONCE: Final = 250
"""How many partitions are appended to in a turn of the event loop."""


class ReplicaFetcher:
    """Owned by the event loop. Runs until `stop`."""

    def __init__(self, leader: BrokerId, number: int, services: FetcherServices) -> None:
        self.leader = leader
        self.kafka_name = f"ReplicaFetcherThread-{number}-{leader}"
        """The client id of Kafka's fetchers in metrics."""
        self._name = f"broker-{services.broker_id}-fetcher-{leader}-{number}"
        self._services = services
        self._fetches = LeaderFetches()
        self._partitions: dict[PartitionKey, Partition] = {}
        self._session = FollowerFetchSession()
        self._connection: AsyncConnection | None = None
        self._failed_turns = 0
        self._rate = RecentRate(services.clock.monotonic())
        self._changed = asyncio.Event()
        self._truncation: asyncio.Future[None] | None = None
        self._in_truncation: frozenset[PartitionKey] = frozenset()
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    # -- what is copied ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._fetches)

    def add(self, partition: Partition) -> None:
        """Copy a partition that follows this leader, from its log's end."""
        fetch = PartitionFetch(
            partition.topic_id,
            partition.topic_partition,
            partition.log,
            leader_epoch=partition.state.leadership.leader_epoch,
            high_watermark=partition.high_watermark,
        )
        if partition.log.truncation_due:
            fetch.truncate_to = partition.log.log_end_offset
        fetch.must_sync = partition.syncs_before_commit and partition.log.unflushed_messages > 0
        self._fetches.add(fetch)
        self._partitions[fetch.key] = partition
        self._changed.set()

    def remove(self, key: PartitionKey) -> None:
        self._fetches.remove(key)
        self._partitions.pop(key, None)
        self._changed.set()

    def wake(self) -> None:
        """Retry at once: the leader may be up by now, or another broker."""
        self._failed_turns = 0
        self._changed.set()

    async def settled(self, keys: Iterable[PartitionKey]) -> None:
        """Wait until no thread truncates the logs of these removed partitions."""
        while self._truncation is not None and not self._in_truncation.isdisjoint(keys):
            await asyncio.shield(self._truncation)

    def fetch_of(self, key: PartitionKey) -> PartitionFetch | None:
        return self._fetches.get(key)

    def lag_of(self, key: PartitionKey) -> int:
        """The number of committed records that a partition lacks, as far as is known."""
        fetch = self._fetches.get(key)
        return 0 if fetch is None else fetch.lag

    @property
    def fetch_rate(self) -> float:
        """Fetches per second, over the last minute."""
        return self._rate.per_second(self._services.clock.monotonic())

    async def stop(self) -> None:
        while self._truncation is not None:
            await asyncio.shield(self._truncation)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._drop_connection()

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
                self._failed_turns = 0
            except (OSError, MalformedBytes, UnsupportedByPeer, TimeoutError) as problem:
                if isinstance(problem, ConnectionError) and self._connection is not None:
                    self._services.connection_lost(self.leader)
                self._drop_connection()
                self._note_unreachable(problem)
                await self._pause(self._delay_ms())
            except Exception as problem:  # the edge of the task: other partitions must still be copied
                log.exception("a fetcher failed because of a bug", leader=self.leader)
                self._services.failures.on_bug(problem)
                self._drop_connection()
                await self._pause(self._services.settings.config.replica_fetch_backoff_ms)

    async def _turn(self) -> None:
        self._changed.clear()
        now_ms = self._services.steady_ms()
        if to_truncate := self._fetches.to_truncate(now_ms):
            await self._truncate({fetch: fetch.truncate_to or 0 for fetch in to_truncate})
        if to_sync := self._fetches.to_sync(now_ms):
            await self._sync(to_sync)
        if to_look_up := self._fetches.to_look_up(now_ms):
            await self._look_up(to_look_up)
        if self._fetches.has_due(now_ms, self._is_throttled):
            await self._fetch(now_ms)
        elif not to_truncate and not to_sync and not to_look_up:
            next_due_ms = self._fetches.next_due_ms(now_ms)
            backoff_ms = self._services.settings.config.replica_fetch_backoff_ms
            is_idle = not len(self._fetches)
            await self._pause(None if is_idle else min(backoff_ms, (next_due_ms or now_ms + backoff_ms) - now_ms))

    def _is_throttled(self, fetch: PartitionFetch) -> bool:
        return self._services.throttles.waits(self._partitions[fetch.key])

    async def _pause(self, delay_ms: int | None) -> None:
        """Wait for a change, or for the delay. `wait_for` is not used, because it loses a cancellation that comes
        together with the change (Python 3.11).
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if delay_ms is None else max(delay_ms, 1) / 1000):
                await self._changed.wait()

    def _delay_ms(self) -> int:
        self._failed_turns += 1
        backoff_ms = self._services.settings.config.replica_fetch_backoff_ms
        return min(FIRST_DELAY_MS << min(self._failed_turns, 16), max(backoff_ms, 1))

    def _note_unreachable(self, problem: Exception) -> None:
        if self._failed_turns == 0:  # logged once, until the leader is reached
            log.warning("a leader cannot be reached", leader=self.leader, reason=str(problem) or repr(problem))

    async def _connected(self) -> AsyncConnection:
        if self._connection is None or self._connection.is_closed:
            self._session.reset()
            self._connection = await self._services.connect(self.leader, self._name)
        return self._connection

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
        self._session.reset()

    # -- fetching ------------------------------------------------------------------------------------------------------

    async def _fetch(self, now_ms: int) -> None:
        connection = await self._connected()
        services, config = self._services, self._services.settings.config
        request = fetch_request(
            self._session.request(self._fetches.changes(now_ms, self._is_throttled)),
            broker_id=services.broker_id,
            broker_epoch=services.broker_epoch(),
            config=config,
        )
        response = await connection.request(request, timeout_s=config.replica_socket_timeout_ms / 1000)
        assert isinstance(response, FetchResponse)
        self._rate.mark(services.clock.monotonic())
        self._session.responded(response.error_code, response.session_id)
        if response.error_code != ErrorCode.NONE:
            log.info("a fetch was rejected", leader=self.leader, reason=ErrorCode(response.error_code).name)
            if response.error_code not in ENDED_SESSION:
                await self._pause(config.replica_fetch_backoff_ms)
            return
        await self._apply(fetched_partitions(response))

    async def _apply(self, fetched: Iterable[tuple[PartitionKey, FetchedPartition]]) -> None:
        bytes_in_turn = partitions_in_turn = 0
        to_sync: list[PartitionFetch] = []
        for key, result in fetched:
            if bytes_in_turn > APPENDED_AT_ONCE_BYTES or partitions_in_turn >= PARTITIONS_AT_ONCE:
                bytes_in_turn = partitions_in_turn = 0
                await asyncio.sleep(0)
            fetch, position = self._fetches.responded(key), self._session.asked.get(key)
            if fetch is None or position is None:
                continue
            match fetch.judge(position, result.error_code, result.diverging):
                case Verdict.APPEND:
                    partition = self._partitions[key]
                    bytes_in_turn += len(result.records)
                    partitions_in_turn += 1
                    await self._append(fetch, partition, result)
                    if result.records and partition.syncs_before_commit and fetch in self._fetches:
                        fetch.must_sync = True
                        to_sync.append(fetch)
                case Verdict.DELAY:
                    self._delay(fetch, ErrorCode(result.error_code).name)
                case Verdict.FAIL:
                    log.info(
                        "a partition will not be fetched until it has a new leader", partition=fetch.topic_partition
                    )
                case _:
                    pass
        if to_sync:
            await self._sync(to_sync)

    def _delay(self, fetch: PartitionFetch, reason: str) -> None:
        backoff_ms = self._services.settings.config.replica_fetch_backoff_ms
        fetch.delay(self._services.steady_ms(), backoff_ms)
        log.debug("fetching a partition will be retried", partition=fetch.topic_partition, reason=reason)

    async def _sync(self, fetches: list[PartitionFetch]) -> None:
        partitions = {fetch: self._partitions[fetch.key] for fetch in fetches if fetch in self._fetches}
        flushes = [self._services.threads.run_blocking(each.log.flush) for each in partitions.values()]
        outcomes = await asyncio.gather(*flushes, return_exceptions=True)
        for fetch, problem in zip(partitions, outcomes, strict=True):
            if isinstance(problem, StorageFailure):
                self._services.failures.log_directory_failed(problem)
            elif isinstance(problem, Refused):  # no space, or no file handle: it is fetched after a later sync
                self._delay(fetch, problem.message)
            elif isinstance(problem, BaseException):
                raise problem
            else:
                fetch.must_sync = False

    # -- appending -----------------------------------------------------------------------------------------------------

    async def _append(self, fetch: PartitionFetch, partition: Partition, result: FetchedPartition) -> None:
        """Append fetched records. If that fails, only this partition is affected."""
        try:
            await self._append_or_raise(fetch, partition, result)
        except StorageFailure as failure:
            fetch.has_failed = True
            self._services.failures.log_directory_failed(failure)
        except UnexpectedAppendOffset as problem:
            log.error("a partition is no longer fetched", partition=fetch.topic_partition, reason=str(problem))
            fetch.has_failed = True
        except KasparError as problem:  # no space, or damaged bytes: another fetch may succeed
            log.warning("fetched records were not appended", partition=fetch.topic_partition, reason=str(problem))
            self._delay(fetch, str(problem))

    async def _append_or_raise(self, fetch: PartitionFetch, partition: Partition, result: FetchedPartition) -> None:
        one, services = partition.log, self._services
        if result.records:
            if one.cold:
                one.warm_up(await services.threads.run_blocking(one.read_cold))
            fetched = await self._check(fetch, partition, result.records)
            if fetch not in self._fetches:
                return  # it has another leader now
            partition.append_as_follower(fetched, now_ms=services.clock.now_ms())
            services.throttles.received(partition, len(result.records))
            if one.config.flush_messages < MAX_LONG and one.unflushed_messages >= one.config.flush_messages:
                services.ask_to_sync(partition)
        partition.follow_leader(result.high_watermark, result.log_start_offset)
        fetch.appended(result.high_watermark)

    async def _check(self, fetch: PartitionFetch, partition: Partition, records: memoryview) -> FetchedBatches:
        check = functools.partial(partition.log.check_fetched, records, leader_epoch=fetch.leader_epoch)
        try:
            if is_quick_to_check(records):
                return check()
            return await self._services.threads.run_blocking(check)
        except UnexpectedAppendOffset as problem:
            # The leader's log starts within a batch, which DeleteRecords can cause, and this is the first batch here.
            # So this log starts with that batch, as in Kafka's Partition.
            one = partition.log
            if one.log_end_offset > one.log_start_offset or not problem.continues_after:
                raise
            await self._truncate({fetch: problem.first_offset}, fully=True)
            if one.truncation_due:
                raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "its log cannot start there yet") from problem
            return check()

    # -- truncation ----------------------------------------------------------------------------------------------------

    async def _look_up(self, fetches: list[PartitionFetch]) -> None:
        """Look up where the leader's logs start and end, for partitions whose log end is out of range there."""
        found = await look_up(await self._connected(), self._services.broker_id, fetches)
        starting_anew: dict[PartitionFetch, int] = {}
        for fetch in fetches:
            offsets = found.get(fetch.topic_partition)
            if fetch not in self._fetches:
                continue
            if offsets is None:
                self._delay(fetch, "the leader did not report its log offsets")
            elif (start := fetch.looked_up(*offsets)) is not None:
                starting_anew[fetch] = start
        if starting_anew:
            await self._truncate(starting_anew, fully=True)

    async def _truncate(self, offsets: Mapping[PartitionFetch, int], *, fully: bool = False) -> None:
        services = self._services
        targets: dict[TopicPartition, int] = {}
        partitions = {fetch: self._partitions[fetch.key] for fetch in offsets if fetch in self._fetches}
        for fetch, partition in partitions.items():
            targets[fetch.topic_partition] = offsets[fetch]
            partition.log.truncating = True
            log.info(
                "truncating the log of a follower",
                partition=fetch.topic_partition,
                offset=offsets[fetch],
                log_end_offset=partition.log.log_end_offset,
                high_watermark=partition.high_watermark,
                fully=fully,
            )
        truncate = services.logs.truncate_fully_and_start_at if fully else services.logs.truncate_to
        self._truncation = asyncio.get_running_loop().create_future()
        self._in_truncation = frozenset(fetch.key for fetch in partitions)
        try:
            failures = await services.threads.run_blocking(
                functools.partial(truncate, targets, now_ms=services.clock.now_ms())
            )
        finally:
            for partition in partitions.values():
                partition.log.truncating = partition.log.truncation_due  # if the truncation has to be repeated
            self._truncation.set_result(None)
            self._truncation = None
            self._in_truncation = frozenset()
        for fetch, partition in partitions.items():
            failure = failures.get(fetch.topic_partition)
            if partition.state.role is not Role.NONE:
                partition.truncated()
            if isinstance(failure, StorageFailure):
                fetch.has_failed = True
                services.failures.log_directory_failed(failure)
            elif failure is not None:
                if partition.log.truncation_due:
                    fetch.truncate_to = partition.log.log_end_offset
                self._delay(fetch, failure.message)
            else:
                fetch.truncated()


def is_quick_to_check(records: memoryview) -> bool:
    """Whether records can be checked on the event loop. Each batch takes some time, whatever its size; batches of one
    partition mostly have about the same size.
    """
    size = len(records)
    if size <= CHECKED_INLINE_BYTES:
        return True
    first = LENGTH_OVERHEAD + int.from_bytes(records[LENGTH_AT:LENGTH_OVERHEAD], "big")
    return size <= FEW_BATCHES_INLINE_BYTES and size <= FEW_BATCHES * first
