"""Which writes share a transaction, what each is decided on, and what becomes of them if it fails."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kaspar.registry.decisions.decision import Decision
from kaspar.registry.group_commit import GroupCommit
from kaspar.registry.interfaces import LogRecord, NotLeader, RecordTooLarge, StoreFailed, StoreTimeout
from kaspar.registry.records import SchemaValue, schema_record
from kaspar.registry.state import State
from tests.unit.registry.memory import FixedLeadership


class GatedLog:
    """Its appends end when the test lets them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.appends: list[list[LogRecord]] = []
        self.gate = asyncio.Event()
        self.failures: list[BaseException] = []
        self.max_records = 1_000

    async def append(self, records: Sequence[LogRecord]) -> None:
        self.appends.append(list(records))
        await self.gate.wait()
        if len(records) > self.max_records:
            raise RecordTooLarge("too large")
        if self.failures:
            raise self.failures.pop(0)
        for key, value in records:
            self.state.replay(key, value, 0, 1)

    async def catch_up(self) -> None: ...


class Writes:
    def __init__(self) -> None:
        self.state = State()
        self.log = GatedLog(self.state)
        self.leadership = FixedLeadership()
        self.group_commit = GroupCommit(self.state, self.log, self.leadership)
        self.decided_on: list[int] = []

    def register(self, subject: str = "s", *, size: int = 1) -> "asyncio.Task[int]":
        """Each gets the id behind the highest one."""

        async def decide(state: State) -> Decision[int]:
            self.decided_on.append(state.index(".").max_id)
            new_id = state.index(".").max_id + 1
            value = SchemaValue(subject, state.versions(subject).highest + 1, new_id, schema="x" * size)
            return Decision((schema_record(value),), new_id)

        return asyncio.create_task(self.group_commit.write(decide))

    def count(self) -> "asyncio.Task[int]":
        """Writes nothing."""

        async def decide(state: State) -> Decision[int]:
            return Decision((), len(state.versions("s")))

        return asyncio.create_task(self.group_commit.write(decide))

    def refuse(self) -> "asyncio.Task[int]":
        async def decide(state: State) -> Decision[int]:
            raise ValueError(f"there are {len(state.versions('s'))}")

        return asyncio.create_task(self.group_commit.write(decide))

    async def begin_append(self) -> None:
        appends = len(self.log.appends)
        while len(self.log.appends) == appends:  # noqa: ASYNC110
            await asyncio.sleep(0)


Scenario = Callable[[Writes], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await scenario(Writes())

    asyncio.run(main())


def test_writes_that_wait_during_a_transaction_are_written_by_the_next() -> None:
    async def scenario(writes: Writes) -> None:
        first = writes.register()
        await writes.begin_append()
        others = [writes.register() for _ in range(5)]
        await asyncio.sleep(0)
        writes.log.gate.set()
        assert await asyncio.gather(first, *others) == [1, 2, 3, 4, 5, 6]
        assert [len(records) for records in writes.log.appends] == [1, 5]
        assert [stored.id for stored in writes.state.versions("s").oldest_first()] == [1, 2, 3, 4, 5, 6]

    run(scenario)


def test_nobody_sees_what_is_not_in_the_log_yet() -> None:
    async def scenario(writes: Writes) -> None:
        group = [writes.register(), writes.register("t"), writes.register()]
        await writes.begin_append()
        assert writes.decided_on == [0, 1, 2]
        assert list(writes.state.matching_subjects(None)) == []
        assert writes.state.index(".").max_id == 0
        writes.log.gate.set()
        await asyncio.gather(*group)
        assert list(writes.state.matching_subjects(None)) == ["s", "t"]

    run(scenario)


def test_what_was_decided_on_pending_records_is_answered_when_they_are_written() -> None:
    async def scenario(writes: Writes) -> None:
        before, writing, after, refused = writes.count(), writes.register(), writes.count(), writes.refuse()
        await writes.begin_append()
        assert await before == 0
        assert [each.done() for each in (writing, after, refused)] == [False, False, False]
        writes.log.gate.set()
        assert (await writing, await after) == (1, 1)
        with pytest.raises(ValueError, match="there are 1"):
            await refused

    run(scenario)


@pytest.mark.parametrize("failure", [StoreFailed("no"), StoreTimeout("late"), NotLeader("deposed"), OSError("a bug")])
def test_a_failed_transaction_fails_the_whole_group_and_no_other(failure: Exception) -> None:
    async def scenario(writes: Writes) -> None:
        group = [writes.register(), writes.register(), writes.count(), writes.refuse()]
        await writes.begin_append()
        later = writes.register()
        writes.log.failures.append(failure)
        writes.log.gate.set()
        outcomes = await asyncio.gather(*group, return_exceptions=True)
        assert [type(each) for each in outcomes] == [type(failure)] * 4
        assert await later == 1

    run(scenario)


def test_refused_decision_fails_nobody_else() -> None:
    async def scenario(writes: Writes) -> None:
        writes.log.gate.set()
        group = [writes.register(), writes.refuse(), writes.register()]
        first, refused, last = await asyncio.gather(*group, return_exceptions=True)
        assert (first, type(refused), last) == (1, ValueError, 2)

    run(scenario)


def test_group_that_is_too_large_for_the_broker_is_written_one_by_one() -> None:
    async def scenario(writes: Writes) -> None:
        writes.log.gate.set()
        writes.log.max_records = 1
        group = [writes.register() for _ in range(3)]
        await writes.begin_append()
        later = [writes.register() for _ in range(2)]
        assert await asyncio.gather(*group) == [1, 2, 3]
        assert await asyncio.gather(*later) == [4, 5]
        assert [len(records) for records in writes.log.appends] == [3, 1, 1, 1, 2, 1, 1]

    run(scenario)


def test_record_that_is_too_large_by_itself_fails_alone() -> None:
    async def scenario(writes: Writes) -> None:
        writes.log.gate.set()
        writes.log.max_records = 0
        with pytest.raises(RecordTooLarge):
            await writes.register()
        writes.log.max_records = 1
        assert await writes.register() == 1

    run(scenario)


def test_group_has_a_bound_in_bytes_and_in_writes() -> None:
    async def scenario(writes: Writes) -> None:
        writes.log.gate.set()
        await asyncio.gather(*(writes.register(size=200_000) for _ in range(3)))
        assert [len(records) for records in writes.log.appends] == [2, 1]
        writes.log.appends.clear()
        await asyncio.gather(*(writes.register() for _ in range(130)))
        assert [len(records) for records in writes.log.appends] == [64, 64, 2]

    run(scenario)


def test_caller_that_gives_up_while_it_waits_writes_nothing() -> None:
    async def scenario(writes: Writes) -> None:
        first = writes.register()
        await writes.begin_append()
        given_up, other = writes.register(), writes.register()
        await asyncio.sleep(0)
        given_up.cancel()
        writes.log.gate.set()
        assert (await first, await other) == (1, 2)
        assert writes.state.index(".").max_id == 2

    run(scenario)


def test_caller_that_gives_up_during_the_transaction_stops_nobody() -> None:
    async def scenario(writes: Writes) -> None:
        first, second = writes.register(), writes.register()
        await writes.begin_append()
        first.cancel()
        writes.log.gate.set()
        assert await second == 2
        assert len(writes.state.versions("s")) == 2

    run(scenario)


def test_leader_that_is_not_ready_fails_all_that_wait() -> None:
    async def scenario(writes: Writes) -> None:
        group = [writes.register(), writes.register()]
        await asyncio.sleep(0)
        writes.leadership.is_leader = False
        outcomes = await asyncio.gather(*group, return_exceptions=True)
        assert [type(each) for each in outcomes] == [NotLeader, NotLeader]
        assert writes.log.appends == []

    run(scenario)


def test_shutdown_during_a_transaction_leaves_nobody_waiting() -> None:
    async def scenario(writes: Writes) -> None:
        group = [writes.register(), writes.count()]
        await writes.begin_append()
        waiting = writes.register()
        await asyncio.sleep(0)
        writes.log.failures.append(asyncio.CancelledError())
        writes.log.gate.set()
        outcomes = await asyncio.gather(*group, waiting, return_exceptions=True)
        assert [type(each) for each in outcomes] == [StoreTimeout, StoreTimeout, StoreFailed]

    run(scenario)
