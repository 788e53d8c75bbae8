"""A client that asks for metadata at the moment at which a leader dies learns of the next leader, and does not drop the
dead broker before its partitions have moved.
"""

import asyncio
import contextlib
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.broker import lost_brokers
from kaspar.broker.handlers.authorized_operations import AllOperations
from kaspar.broker.handlers.metadata import MetadataHandler
from kaspar.broker.lost_brokers import LostBrokers
from kaspar.metadata import AdvertisedEndpoint, BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.images import ImageChange
from kaspar.network.api import PartlyEncoded
from kaspar.network.large_requests import LargeRequests
from kaspar.network.responses import encode_response
from kaspar.protocol import codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import read_response_header
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.schema import Message

ONE, TWO = BrokerId(1), BrokerId(2)
VERSION = 12
SETTINGS: Any = SimpleNamespace(config=SimpleNamespace(auto_create_topics_enable=False))
OF_THE_TOPIC = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=False)
OF_ALL = MetadataRequest(topics=None)


class _Tasks:
    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        self.last = asyncio.get_running_loop().create_task(work, name=name)


class _Broker:
    """Broker 1, as far as it responds to Metadata. Broker 2 leads, and listens on `port` or does not."""

    def __init__(self, port: int) -> None:
        endpoints = (AdvertisedEndpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT"),)
        brokers = {each: BrokerRegistration(each, 1, endpoints) for each in (ONE, TWO)}
        topic = TopicImage("orders", uuid.uuid4(), (_led_by(TWO, 0),))
        self.current = ClusterImage("cluster", controller_id=ONE, brokers=brokers).with_topics({"orders": topic})
        self.tasks = _Tasks()
        tasks: Any = self.tasks
        self.lost = LostBrokers(self, tasks)
        auto_creation: Any = None
        turns = LargeRequests(asyncio.to_thread)
        self._handler = MetadataHandler(self, SETTINGS, auto_creation, self.lost, turns, AllOperations())

    def fence(self) -> None:
        """The controller has fenced broker 2, and broker 1 leads."""
        old = self.current
        topic = replace(old.topics["orders"], partitions=(_led_by(ONE, 1),))
        new = replace(old.with_topics({"orders": topic}), brokers={ONE: old.brokers[ONE]})
        self.current = new
        change = ImageChange(old, new, frozenset({"orders"}))
        self.lost.note_departed(change)
        self._handler.image_changed(change)
        self.lost.image_changed(change)

    async def ask(self, request: MetadataRequest = OF_THE_TOPIC) -> MetadataResponse:
        context: Any = SimpleNamespace(version=VERSION, peer="client", listener="PLAINTEXT")
        response = self._handler(context, request)
        if not isinstance(response, Message | PartlyEncoded):
            response = await response
        encoded: Any = encode_response(VERSION, 1, response)[0]
        frame = bytes(encoded)[4:]
        _, position = read_response_header(ApiKey.METADATA, VERSION, frame)
        message, _ = codec.read(MetadataResponse, VERSION, frame, position)
        return message


def _led_by(leader: BrokerId, epoch: int) -> PartitionImage:
    return PartitionImage((TWO, ONE), (TWO, ONE), leader, LeaderEpoch(epoch), epoch)


def _leader(response: MetadataResponse) -> int:
    return response.topics[0].partitions[0].leader_id


def _brokers(response: MetadataResponse) -> set[int]:
    return {broker.node_id for broker in response.brokers}


@contextlib.contextmanager
def _port(*, listens: bool) -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        yield server.getsockname()[1]


def _run(scenario: Callable[[_Broker], Coroutine[Any, Any, None]], *, listens: bool = False) -> None:
    with _port(listens=listens) as port:

        async def run() -> None:
            async with asyncio.timeout(20):
                await scenario(_Broker(port))

        asyncio.run(run())


def test_request_waits_for_the_next_leader_once_the_process_of_the_leader_has_ended() -> None:
    async def scenario(broker: _Broker) -> None:
        broker.lost.connection_lost(TWO)
        asked = asyncio.ensure_future(broker.ask())
        await broker.tasks.last
        await asyncio.sleep(0)
        assert not asked.done()
        broker.fence()
        assert _leader(await asked) == ONE

    _run(scenario)


def test_nobody_waits_for_a_leader_that_still_listens() -> None:
    async def scenario(broker: _Broker) -> None:
        broker.lost.connection_lost(TWO)
        assert _leader(await broker.ask()) == TWO
        assert broker.tasks.last.done()
        assert not broker.lost.are_suspected

    _run(scenario, listens=True)


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_brokers, "FENCED_WITHIN_S", 0.05)

    async def scenario(broker: _Broker) -> None:
        broker.lost.connection_lost(TWO)
        assert _leader(await broker.ask()) == TWO

    _run(scenario)


def test_departed_broker_is_listed_for_a_while_with_the_topics_that_it_led(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: _Broker) -> None:
        assert _brokers(await broker.ask()) == {ONE, TWO}
        broker.fence()
        assert _brokers(await broker.ask()) == {ONE, TWO}
        assert _brokers(await broker.ask(OF_ALL)) == {ONE}
        monkeypatch.setattr(lost_brokers, "LISTED_FOR_S", -1.0)
        broker.lost.note_departed(ImageChange(broker.current, replace(broker.current, brokers={}), frozenset()))
        assert ONE not in {each.broker_id for each in broker.lost.departed()}

    _run(scenario)


def test_broker_that_is_back_is_listed_once() -> None:
    async def scenario(broker: _Broker) -> None:
        before = broker.current
        broker.fence()
        back = replace(broker.current, brokers=before.brokers)
        broker.lost.note_departed(ImageChange(broker.current, back, frozenset()))
        broker.current = back
        assert sorted(each.node_id for each in (await broker.ask()).brokers) == [ONE, TWO]

    _run(scenario)
