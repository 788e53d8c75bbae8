"""The writer of the log on a broker that loses responses, fences, aborts, and is slow."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.registry.interfaces import LogRecord, NotLeader, RecordTooLarge, StoreFailed, StoreTimeout
from kaspar.registry.log.position import LogPosition, LogReplaced
from kaspar.registry.log.producer import Fenced
from kaspar.registry.log.writer import LogWriter

NOOP: LogRecord = (b"noop", None)
FIRST: LogRecord = (b"first", b"1")
SECOND: LogRecord = (b"second", b"2")


class Broker:
    """A log with one open transaction, that belongs to the newest epoch."""

    def __init__(self) -> None:
        self.epoch = 0
        self.open: list[LogRecord] = []
        self.committed: list[LogRecord] = []
        self.end_offset = 0
        self.outcomes: list[tuple[int, bool]] = []
        """What the reader has not read yet: the offset behind each ended transaction, and whether it was committed."""
        self.position: LogPosition | None = LogPosition("_schemas", ZERO_UUID, 0)
        self.watched: dict[int, asyncio.Future[bool]] = {}
        self.left_behind: list[LogRecord] = []
        self.is_read = True
        self._watch = asyncio.Event()

    problem: str | None = None

    def end(self, *, commit: bool) -> None:
        if not self.open:
            return
        if commit:
            self.committed += self.open
        self.open = []
        self.outcomes.append((self.end_offset, commit))
        self.read()

    def read(self) -> None:
        while self.is_read and self.outcomes:
            end, committed = self.outcomes.pop(0)
            for offset in [each for each in self.watched if each < end]:
                self.watched.pop(offset).set_result(committed)

    def watch(self, offset: int) -> "asyncio.Future[bool]":
        self.watched[offset] = asyncio.get_running_loop().create_future()
        self._watch.set()
        return self.watched[offset]

    async def is_watched(self) -> None:
        """Return when the next record is waited for."""
        self._watch.clear()
        if not self.watched:
            await self._watch.wait()

    async def superseding(self) -> list[LogRecord]:
        return [each for each in self.left_behind if each not in self.committed]


class ScriptedProducer:
    """Carries requests out at the broker. `faults` has what to do instead, or besides, for the next calls of a name."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.epoch = -1
        self.faults: dict[str, list[Callable[[], Awaitable[None]]]] = {}
        self.calls: list[str] = []

    async def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.faults.get(name):
            await self.faults[name].pop(0)()

    async def take_over(self) -> None:
        await self._call("take_over")
        self._initialize()

    async def renew(self) -> None:
        await self._call("renew")
        self._check()
        self._initialize()

    def _initialize(self) -> None:
        self.broker.end(commit=False)
        self.broker.epoch += 1
        self.epoch = self.broker.epoch

    async def send(self, records: Sequence[LogRecord], topic_id: UUID) -> int:
        await self._call("send")
        self._check()
        self.broker.open += records
        self.broker.end_offset += len(records)
        return self.broker.end_offset - 1

    async def commit(self) -> None:
        await self._call("commit")
        self._check()
        self.broker.end(commit=True)

    def _check(self) -> None:
        if self.epoch != self.broker.epoch:
            raise Fenced("PRODUCER_FENCED")


class Scene:
    def __init__(self, timeout_s: float = 5.0) -> None:
        self.broker = Broker()
        self.producer = ScriptedProducer(self.broker)
        self.fenced = 0
        self.writer = LogWriter(self.broker, self.producer, NOOP, timeout_s=timeout_s, on_fenced=self._on_fenced)

    def _on_fenced(self) -> None:
        self.fenced += 1

    async def lead(self) -> None:
        self.writer.lead()
        await self.writer.ready()

    async def append(self, record: LogRecord) -> None:
        await self.writer.ready()
        await self.writer.append([record])

    def once(self, name: str, problem: Exception, *, before: Callable[[], None] = lambda: None) -> None:
        async def fault() -> None:
            before()
            raise problem

        self.producer.faults.setdefault(name, []).append(fault)


def run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test

    asyncio.run(bounded())


def test_new_leader_fences_and_reads_a_record_of_its_own_before_it_is_ready() -> None:
    async def test() -> None:
        scene = Scene()
        scene.broker.open = [SECOND]  # of its predecessor
        await scene.lead()
        assert scene.producer.calls == ["take_over", "send", "commit"]
        assert scene.broker.committed == [NOOP]
        await scene.append(FIRST)
        assert scene.broker.committed == [NOOP, FIRST]

    run(test())


def test_new_leader_writes_over_what_aborted_transactions_left() -> None:
    async def test() -> None:
        scene = Scene()
        scene.broker.left_behind = [SECOND]
        await scene.lead()
        assert scene.broker.committed == [NOOP, SECOND]

    run(test())


def test_bug_in_becoming_ready_is_logged_and_the_leader_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        scene = Scene()
        scene.once("take_over", ValueError("a bug"))
        await scene.lead()
        assert scene.producer.calls == ["take_over", "take_over", "send", "commit"]

    run(test())
    assert "unexpected error while becoming ready to write" in caplog.text


def test_instance_that_does_not_lead_writes_nothing() -> None:
    async def test() -> None:
        scene = Scene()
        with pytest.raises(NotLeader):
            await scene.writer.ready()
        with pytest.raises(NotLeader):
            await scene.writer.append([FIRST])
        assert scene.producer.calls == []

    run(test())


def test_lost_response_to_a_commit_that_was_carried_out_is_a_success() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        scene.once("commit", ConnectionResetError("lost"), before=lambda: scene.broker.end(commit=True))
        await scene.append(FIRST)
        await scene.append(SECOND)
        assert scene.broker.committed == [NOOP, FIRST, SECOND]

    run(test())


def test_lost_commit_that_was_not_carried_out_is_a_failure_and_the_leader_goes_on() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        scene.once("commit", ConnectionResetError("lost"))
        with pytest.raises(StoreFailed):
            await scene.append(FIRST)
        await scene.append(SECOND)
        assert scene.broker.committed == [NOOP, NOOP, SECOND]

    run(test())


def test_outcome_is_found_out_although_the_broker_stays_away_for_a_while() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        scene.once("commit", ConnectionResetError("lost"), before=lambda: scene.broker.end(commit=True))
        scene.once("renew", ConnectionRefusedError("away"))
        scene.once("renew", Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "away"))
        await scene.append(FIRST)
        assert scene.broker.committed == [NOOP, FIRST]

    run(test())


def test_fenced_leader_steps_down_and_does_not_fence_its_successor() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        await scene.writer.ready()
        scene.broker.epoch += 1
        with pytest.raises(NotLeader):
            await scene.writer.append([FIRST])
        assert not scene.writer.is_leading
        assert scene.fenced == 1
        assert scene.broker.committed == [NOOP]
        assert scene.producer.calls.count("take_over") == 1
        assert "renew" not in scene.producer.calls
        with pytest.raises(NotLeader):
            await scene.writer.ready()

    run(test())


def test_commit_that_was_carried_out_before_the_fence_is_a_success() -> None:
    """The first attempt was carried out, its response was lost, and the second one is fenced by the next leader."""

    async def test() -> None:
        scene = Scene()
        await scene.lead()

        def carried_out_then_fenced() -> None:
            scene.broker.end(commit=True)
            scene.broker.epoch += 1

        scene.once("commit", Fenced("PRODUCER_FENCED"), before=carried_out_then_fenced)
        await scene.append(FIRST)
        assert scene.broker.committed == [NOOP, FIRST]
        assert not scene.writer.is_leading
        assert scene.fenced == 1

    run(test())


def test_records_that_are_not_read_back_in_time_time_out_and_nothing_is_decided_until_they_are() -> None:
    async def test() -> None:
        scene = Scene(timeout_s=0.05)
        await scene.lead()
        await scene.writer.ready()
        scene.broker.is_read = False
        with pytest.raises(StoreTimeout):
            await scene.writer.append([FIRST])
        with pytest.raises(StoreTimeout):
            await scene.writer.ready()
        with pytest.raises(StoreTimeout):
            await scene.writer.append([SECOND])
        assert scene.broker.committed == [NOOP, FIRST]
        scene.broker.is_read = True
        scene.broker.read()
        await scene.append(SECOND)
        assert scene.broker.committed == [NOOP, FIRST, SECOND]

    run(test())


def test_caller_that_is_cancelled_leaves_the_write_to_its_end() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        await scene.writer.ready()
        scene.broker.is_read = False
        caller = asyncio.create_task(scene.writer.append([FIRST]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        scene.broker.is_read = True
        scene.broker.read()
        await scene.append(SECOND)
        assert scene.broker.committed == [NOOP, FIRST, SECOND]

    run(test())


def test_record_that_is_too_large_is_refused_and_the_leader_goes_on() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        scene.once("send", Refused(ErrorCode.MESSAGE_TOO_LARGE, "too large"))
        with pytest.raises(RecordTooLarge):
            await scene.append(FIRST)
        await scene.append(SECOND)
        assert FIRST not in scene.broker.committed
        assert scene.broker.committed[-1] == SECOND

    run(test())


def test_records_that_could_not_be_sent_are_aborted() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        # The response is lost, and the records are in the log.
        scene.once("send", TimeoutError("lost"), before=lambda: scene.broker.open.append(FIRST))
        with pytest.raises(StoreFailed):
            await scene.append(FIRST)
        await scene.append(SECOND)
        assert FIRST not in scene.broker.committed

    run(test())


def test_what_was_decided_in_one_term_is_not_written_in_another() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        await scene.writer.ready()
        # The decision takes long. Meanwhile another instance has led, and written.
        scene.writer.step_down()
        scene.writer.lead()
        await scene.writer.settled()
        with pytest.raises(NotLeader):
            await scene.writer.append([FIRST])
        assert FIRST not in scene.broker.committed
        await scene.append(SECOND)

    run(test())


def test_write_to_a_log_that_is_replaced_fails_and_the_leader_goes_on_with_the_new_one() -> None:
    async def test() -> None:
        scene = Scene()
        await scene.lead()
        scene.broker.is_read = False
        writing = asyncio.create_task(scene.append(FIRST))
        await scene.broker.is_watched()
        for waiting in scene.broker.watched.values():
            waiting.set_exception(LogReplaced("the topic was deleted and recreated"))
        scene.broker.watched.clear()
        scene.broker.outcomes.clear()
        scene.broker.is_read = True
        with pytest.raises(StoreFailed):
            await writing
        await scene.append(SECOND)
        assert scene.broker.committed[-1] == SECOND

    run(test())


def test_leader_waits_for_a_log_that_cannot_be_read() -> None:
    async def test() -> None:
        scene = Scene(timeout_s=0.05)
        position, scene.broker.position = scene.broker.position, None
        scene.writer.lead()
        with pytest.raises(StoreTimeout):
            await scene.writer.ready()
        assert scene.broker.committed == []
        scene.broker.position = position
        await scene.writer.settled()
        await scene.append(FIRST)
        assert scene.broker.committed == [NOOP, FIRST]

    run(test())


def test_closing_ends_what_is_under_way() -> None:
    async def test() -> None:
        scene = Scene()
        scene.broker.is_read = False
        scene.writer.lead()
        await scene.broker.is_watched()
        await scene.writer.close()
        with pytest.raises(NotLeader):
            await scene.writer.ready()

    run(test())
