"""Following a topic: what is new arrives, in a sample if there is too much, from one reader for many pages."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from kaspar.callers.identities import SERVICE, Identity
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import Client
from kaspar.console.messages.filters import FilterError
from kaspar.console.messages.tailing import TailEvent, TailKey, TailReader, Tails
from kaspar.console.messages.views import Decoding
from kaspar.console.problems import NotThere
from kaspar.records.builder import build_batch
from kaspar.records.record import Record
from tests.integration.console.messages.conftest import NewTopic
from tests.peers.process import BrokerProcess


def fill(client: Client, topic: str, *values: str, partition: int = 0) -> None:
    client.produce(topic, partition, bytes(build_batch([Record(1_000, None, value.encode()) for value in values])))


def texts(event: TailEvent) -> list[str]:
    return [row["value"]["text"] for row in event.records]


def reader(topic: str, filter_: str = "") -> TailReader:
    return TailReader(TailKey(SERVICE, topic, filter=filter_), Decoding())


def test_only_what_is_new_is_shown(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    fill(client, topic, "old")
    tail = reader(topic)
    assert texts(tail.poll(client)) == []
    fill(client, topic, "a", "b")
    fill(client, topic, "c", partition=1)
    event = tail.poll(client)
    assert sorted(texts(event)) == ["a", "b", "c"]
    assert (event.appended, event.matched, event.skipped) == (3, 3, 0)
    assert texts(tail.poll(client)) == []


def test_a_filter_decides(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    tail = reader(topic, "value.n > 1")
    tail.poll(client)
    fill(client, topic, *(f'{{"n": {n}}}' for n in range(4)))
    event = tail.poll(client)
    assert texts(event) == ['{"n": 2}', '{"n": 3}']
    assert (event.appended, event.matched) == (4, 2)


def test_of_many_records_a_sample_is_shown_with_the_newest(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    tail = reader(topic)
    tail.poll(client)
    fill(client, topic, *map(str, range(1000)))
    event = tail.poll(client)
    assert (len(event.records), event.matched, event.appended) == (25, 1000, 1000)
    assert texts(event)[-1] == "999"


def test_a_topic_that_is_too_fast_is_skipped_to_its_end(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    tail = reader(topic)
    tail.poll(client)
    for _ in range(12):
        fill(client, topic, *["x" * 400_000] * 2)
    event = tail.poll(client)
    assert event.appended == 24
    assert 0 < event.matched < 24
    assert event.skipped == 24 - event.matched
    assert texts(tail.poll(client)) == []


def test_an_unknown_topic_is_said(client: Client) -> None:
    with pytest.raises(NotThere):
        reader("nowhere").poll(client)
    with pytest.raises(FilterError):
        reader("nowhere", "a b")


class Sessions:
    """`call` as AdminSessions has it, in a thread, with a count."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = Admin(bootstrap)
        self.calls = 0

    async def call(self, identity: Identity, function: Callable[[Admin], Any]) -> Any:
        assert identity == SERVICE
        self.calls += 1
        return await asyncio.to_thread(function, self.admin)


def test_pages_share_a_tail_which_ends_with_the_last(
    client: Client, messages_broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic(1)
    sessions = Sessions(messages_broker.bootstrap)

    async def first_with_records(events: Any) -> TailEvent:
        async for event in events:
            if event.records:
                return event  # type: ignore[no-any-return]
        raise AssertionError("the events ended")

    async def follow() -> None:
        tails = Tails(sessions.call, lambda key: Decoding())
        key = TailKey(SERVICE, topic)
        async with tails.follow(key) as one, tails.follow(key) as other:
            await anext(one)
            await asyncio.to_thread(fill, client, topic, "new")
            found = await asyncio.wait_for(asyncio.gather(*map(first_with_records, (one, other))), 20)
            assert [texts(event) for event in found] == [["new"], ["new"]]
            assert found[0] is found[1]
            with pytest.raises(FilterError):
                async with tails.follow(TailKey(SERVICE, topic, filter="a b")):
                    pass
        assert len(asyncio.all_tasks()) == 1, "nothing follows the topic any more"

    asyncio.run(follow())
    sessions.admin.close()


def test_many_tails_leave_threads_and_requests_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.console.messages.tailing.MAX_FOLLOWERS", 20)
    under_way: list[Identity] = []

    async def blocked(identity: Identity, function: Callable[[Admin], TailEvent]) -> TailEvent:
        under_way.append(identity)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def follow() -> None:
        tails = Tails(blocked, lambda key: Decoding())
        async with contextlib.AsyncExitStack() as pages:
            for number in range(20):
                assert tails.has_room
                await pages.enter_async_context(tails.follow(TailKey(SERVICE, f"t{number % 10}")))
            await asyncio.sleep(0)
            assert len(under_way) < 10, "the others wait for a thread"
            assert not tails.has_room
        assert tails.has_room

    asyncio.run(follow())


def test_a_tail_survives_a_failing_call(client: Client, messages_broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    sessions = Sessions(messages_broker.bootstrap)

    async def flaky(identity: Identity, function: Callable[[Admin], Any]) -> Any:
        if sessions.calls == 1:
            sessions.calls += 1
            raise ConnectionResetError("the broker went away")
        return await sessions.call(identity, function)

    async def follow() -> list[TailEvent]:
        found = []
        async with Tails(flaky, lambda key: Decoding()).follow(TailKey(SERVICE, topic)) as events:
            async for event in events:
                found.append(event)
                if len(found) == 3:
                    break
        return found

    first, second, third = asyncio.run(follow())
    assert (first.problem, second.problem, third.problem) == (None, "the broker went away", None)
    sessions.admin.close()
