"""Topics that Metadata brings about: unknown in the response, created once, a moment later."""

import asyncio
import logging
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker import auto_creation
from kaspar.broker.auto_creation import AutoCreation
from kaspar.broker.server import Broker
from kaspar.controller.events import CreateTopics, NewTopic
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch


class Pause:
    """The moments before and after creations, which last until the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._over = asyncio.Semaphore(0)
        monkeypatch.setattr(AutoCreation, "_pause", self._wait)

    async def _wait(self) -> None:
        await self._over.acquire()

    def end_one(self) -> None:
        self._over.release()

    def end(self) -> None:
        for _ in range(100):
            self._over.release()


async def ask(client: Client, *names: str, create: bool = True) -> list[tuple[int, int]]:
    """The error and the number of partitions of each topic."""
    wanted = tuple(MetadataRequestTopic(name=name) for name in names)
    client.send(MetadataRequest(topics=wanted, allow_auto_topic_creation=create))
    response = await client.response(MetadataResponse)
    return [(topic.error_code, len(topic.partitions)) for topic in response.topics]


UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)


def test_a_topic_stays_unknown_for_a_moment_and_is_there_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path, num_partitions="3") as broker:
            client = Client(broker)
            submitted, pause = count_creations(broker, monkeypatch), Pause(monkeypatch)
            # As kafka-go does: its leader finds the topic unknown, and so must its watcher, a round trip later.
            assert await ask(client, "t") == [UNKNOWN]
            assert await ask(client, "t") == [UNKNOWN]
            assert await ask(Client(broker), "t", "u", "bad name", "__consumer_offsets") == [
                UNKNOWN,
                UNKNOWN,
                (ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
                UNKNOWN,
            ]
            client.produce(("t", 0, make_batch()))
            (refused,) = await client.produced()
            assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            pause.end()
            await until(lambda: set(broker.image.topics) == {"t", "u"})
            await until(lambda: not broker.auto_creation.is_hidden_from("127.0.0.1:1", "u"))
            assert await ask(client, "t", "u") == [(0, 3), (0, 3)]
            assert [{topic.name for topic in event.topics} for event in submitted] == [{"t", "u", "bad name"}]
            assert await ask(client, "v") == [UNKNOWN]
            await until(lambda: "v" in broker.image.topics)
            assert await ask(client, "w", create=False) == [UNKNOWN]

    run(scenario())


def test_a_connection_that_got_unknown_topic_gets_it_for_a_moment_whenever_the_topic_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            monkeypatch.setattr(auto_creation, "DELAY_S", 3600.0)
            pause = Pause(monkeypatch)
            reader, other = Client(broker, peer="10.0.0.1:1"), Client(broker, peer="10.0.0.2:2")
            assert await ask(reader, "t") == [UNKNOWN]
            pause.end_one()
            await until(lambda: "t" in broker.image.topics)
            assert await ask(reader, "t") == [UNKNOWN]
            assert await ask(other, "t") == [(0, 1)]
            assert await ask(reader, "t", create=False) == [(0, 1)], "a request that creates nothing does not wait"
            monkeypatch.setattr(auto_creation, "DELAY_S", 0.0)
            assert await ask(reader, "t") == [(0, 1)]

    run(scenario())


def count_creations(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[CreateTopics]:
    seen: list[CreateTopics] = []
    submit = broker.controller.submit

    async def counted(event: CreateTopics) -> object:
        if isinstance(event, CreateTopics):  # the broker also reports where its new logs are
            seen.append(event)
        return await submit(event)

    monkeypatch.setattr(broker.controller, "submit", counted)
    return seen


def test_what_is_created_explicitly_meanwhile_is_left_as_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            submitted, pause = count_creations(broker, monkeypatch), Pause(monkeypatch)
            assert await ask(client, "t") == [UNKNOWN]
            await create_topic(broker, "t", 5)
            assert await ask(client, "t") == [(0, 5)]
            assert await ask(client, "other") == [UNKNOWN]
            pause.end()
            await until(lambda: "other" in broker.image.topics)
            assert len(broker.image.topics["t"].partitions) == 5
            assert submitted[1:] == [CreateTopics((NewTopic("other"),))]

    run(scenario())


def test_a_broker_that_stops_meanwhile_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        Pause(monkeypatch)
        async with running(tmp_path) as broker:
            assert await ask(Client(broker), "t") == [UNKNOWN]
        async with running(tmp_path) as broker:
            assert not broker.image.topics

    run(scenario())


def test_how_many_names_may_wait_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(auto_creation, "MOST_WAITING", 2)
        async with running(tmp_path) as broker:
            client = Client(broker)
            assert await ask(client, "a", "b", "c") == [UNKNOWN] * 3
            await until(lambda: bool(broker.image.topics))
            assert set(broker.image.topics) == {"a", "b"}

    run(scenario())


def test_names_that_are_being_created_count_among_those_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a client could line up names faster than the controller creates topics, without end."""

    async def scenario() -> None:
        monkeypatch.setattr(auto_creation, "MOST_WAITING", 2)
        async with running(tmp_path) as broker:
            pause = Pause(monkeypatch)
            client = Client(broker)
            await ask(client, "a", "b")
            pause.end_one()
            await until(lambda: set(broker.image.topics) == {"a", "b"})
            await ask(client, "c")
            pause.end()
            await until(lambda: not broker.auto_creation._new)  # not only for connections refused too long ago
            assert set(broker.image.topics) == {"a", "b"}
            await ask(client, "d")
            await until(lambda: set(broker.image.topics) == {"a", "b", "d"})

    run(scenario())


def test_many_names_are_created_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            submitted = count_creations(broker, monkeypatch)
            names = [f"t{number}" for number in range(45)]
            await ask(Client(broker), *names)
            await until(lambda: set(broker.image.topics) == set(names))
            assert [len(event.topics) for event in submitted] == [20, 20, 5]

    run(scenario())


def test_creations_that_are_refused_again_and_again_are_reported_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            Pause(monkeypatch).end()
            refused: list[CreateTopics] = []

            async def refuse(event: CreateTopics) -> object:
                refused.append(event)
                raise Refused(ErrorCode.NOT_CONTROLLER, "the store is away")

            monkeypatch.setattr(broker.controller, "submit", refuse)
            client = Client(broker)
            asked: list[str] = []
            for name in "abcde":
                asked.append(name)
                await ask(client, name)
                await until(lambda: len(refused) == len(asked))
            assert len(reports()) == 1
            monkeypatch.setattr(broker.auto_creation, "_next_report", 0.0)
            await ask(client, "last")
            await until(lambda: len(reports()) == 2)
            assert [record.values["count"] for record in reports()] == [1, 5]  # type: ignore[attr-defined]

    def reports() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.message == "topics could not be created"]

    run(scenario())
