"""Connections to other brokers: made when needed, closed when the image says that a broker is gone."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker.peers import Peers
from kaspar.metadata import AdvertisedEndpoint, BrokerRegistration, ClusterImage
from kaspar.metadata.images import ImageChange, ImageSource
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.broker.running import create_topic, run, running, until

ONE = BrokerId(1)
LISTENER = "PLAINTEXT"


class Following:
    def __init__(self, port: int, epoch: int = 5) -> None:
        endpoint = AdvertisedEndpoint(LISTENER, "127.0.0.1", port, "PLAINTEXT")
        self.current = ClusterImage("cluster", brokers={ONE: BrokerRegistration(ONE, epoch, (endpoint,))})
        self.peers = Peers(cast(ImageSource, self), listener=lambda: LISTENER, client_id="test")

    def change(self, *, epoch: int | None) -> None:
        old = self.current
        brokers = {} if epoch is None else {ONE: replace(old.brokers[ONE], epoch=epoch)}
        self.current = replace(old, brokers=brokers)
        self.peers.image_changed(ImageChange(old, self.current, frozenset()))


async def ask(peers: Peers, broker_id: BrokerId = ONE, *, within_s: float = 5) -> MetadataResponse:
    return await peers.request(broker_id, MetadataRequest(topics=()), MetadataResponse, within_s=within_s)


async def refusal(peers: Peers, *, within_s: float = 5) -> ErrorCode:
    with pytest.raises(Refused) as refused:
        await ask(peers, within_s=within_s)
    return refused.value.code


def test_a_broker_is_asked_where_the_image_says_it_is_and_by_one_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            following = Following(broker.port)
            responses = await asyncio.gather(*(ask(following.peers) for _ in range(5)))
            assert all(response.cluster_id == broker.image.cluster_id for response in responses)
            assert len(following.peers._connections) == 1
            (_, before) = following.peers._connections[ONE]
            following.change(epoch=6)
            assert before.is_closed
            await ask(following.peers)
            assert following.peers._connections[ONE][0] == 6
            following.change(epoch=None)
            assert await refusal(following.peers) is ErrorCode.NETWORK_EXCEPTION
            await following.peers.close()
            assert await refusal(following.peers) is ErrorCode.NETWORK_EXCEPTION

    run(scenario())


def test_nobody_waits_for_a_broker_that_the_image_has_no_longer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            following = Following(broker.port)
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            waits = FetchRequest(
                max_wait_ms=3_600_000,
                min_bytes=1,
                topics=(FetchTopic(topic="t", partitions=(partition,)),),
                forgotten_topics_data=(),
            )
            request = following.peers.request(ONE, waits, FetchResponse, within_s=3600, version=12)
            waiting = asyncio.ensure_future(request)
            await until(lambda: bool(following.peers._connections))
            assert not waiting.done()
            following.change(epoch=None)
            with pytest.raises(Refused) as refused:
                await waiting
            assert refused.value.code is ErrorCode.NETWORK_EXCEPTION
            await following.peers.close()

    run(scenario())


def test_a_port_that_nobody_listens_on_is_no_bug() -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        assert await refusal(Following(port).peers) is ErrorCode.NETWORK_EXCEPTION

    run(scenario())
