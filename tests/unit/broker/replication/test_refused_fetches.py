"""A leader that refuses a fetch as a whole: it is asked again, but not all the time."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from kaspar.base.errors import ErrorCode
from kaspar.broker.replication.fetcher import ReplicaFetcher
from kaspar.protocol.messages.fetch import FetchRequest, FetchResponse
from kaspar.protocol.schema import Message
from tests.unit.broker.replication.test_leader import ME, OTHER, decide
from tests.unit.broker.running import create_topic, run, running, until


class RefusingLeader:
    """A connection to a leader that responds with these errors, and with the last one again and again."""

    is_closed = False

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.requests = 0

    async def request(self, request: Message, **_: Any) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        self.requests += 1
        await asyncio.sleep(0)
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        return FetchResponse(error_code=code, responses=())

    def abort(self) -> None:
        pass


async def fetch_from(leader: RefusingLeader, tmp_path: Path, enough: int) -> None:
    async with running(tmp_path) as broker:
        (partition,) = await create_topic(broker, "t")
        decide(partition, OTHER, ME, leader=OTHER, epoch=9)

        async def connect(*_: object) -> Any:
            return leader

        fetcher = ReplicaFetcher(OTHER, 0, replace(broker.replicas.fetchers._services, connect=connect))
        fetcher.add(partition)
        await until(lambda: leader.requests >= enough)
        for _ in range(100):
            await asyncio.sleep(0)
        await fetcher.stop()


def test_a_refused_fetch_is_repeated_after_a_pause(tmp_path: Path) -> None:
    leader = RefusingLeader(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    run(fetch_from(leader, tmp_path, 1))
    assert leader.requests == 1


def test_a_session_that_has_ended_is_replaced_at_once(tmp_path: Path) -> None:
    ended = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    leader = RefusingLeader(*ended, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    run(fetch_from(leader, tmp_path, 3))
    assert leader.requests == 3
