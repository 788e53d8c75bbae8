"""Writes on an instance that does not lead."""

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from kaspar.registry.interfaces import ForwardedRequest, ForwardedResponse, NotLeader, StoreTimeout
from tests.unit.registry.memory import DirectForwarder, FixedLeadership, MemoryRegistry

STRING = '"string"'


class Pair:
    """A leader, and a follower that replays what the leader writes."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.leader = MemoryRegistry(runner=runner)
        self.forwarder = DirectForwarder(self.leader)
        leadership = FixedLeadership(is_leader=False, leader_url="http://leader")
        self.follower = MemoryRegistry(leadership=leadership, forwarder=self.forwarder, runner=runner)
        append = self.leader.log.append

        async def append_to_both(records: object) -> None:
            await append(records)  # type: ignore[arg-type]
            await self.follower.log.append(self.leader.log.records[len(self.follower.log.records) :])

        self.leader.log.append = append_to_both  # type: ignore[method-assign]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with asyncio.Runner() as runner:
        pair = Pair(runner)
        with pair.leader, pair.follower:
            yield pair


def test_write_is_forwarded_and_its_response_returned(pair: Pair) -> None:
    assert pair.follower.register("orders", STRING)["id"] == 1
    assert pair.leader.get("/subjects") == pair.follower.get("/subjects") == ["orders"]


def test_request_is_forwarded_as_it_came(pair: Pair) -> None:
    pair.follower.request(
        "POST",
        "/contexts/eu/subjects/a%2Fb/versions?normalize=true",
        {"schema": STRING},
        headers={"authorization": "Basic eDp5", "content-type": "application/json"},
    )
    (request,) = pair.forwarder.requests
    assert (request.method, request.target) == ("POST", "/contexts/eu/subjects/a%2Fb/versions?normalize=true")
    assert request.headers["authorization"] == "Basic eDp5"
    assert pair.leader.get("/subjects") == [":.eu:a/b"]


def test_error_of_the_leader_is_returned(pair: Pair) -> None:
    pair.follower.register("orders", STRING)
    assert pair.follower.try_register("orders", '"int"').error[:2] == (409, 409)
    assert pair.follower.request("DELETE", "/subjects/nothing").error == (404, 40401, "Subject 'nothing' not found.")


class RefusedByLeader(DirectForwarder):
    HEADERS: Final = {
        "content-type": "application/vnd.schemaregistry.v1+json",
        "www-authenticate": 'Basic realm="schema-registry"',
        "retry-after": "7",
    }

    async def forward(self, leader_url: str, request: ForwardedRequest) -> ForwardedResponse:
        return ForwardedResponse(401, self.HEADERS, b'{"error_code":401,"message":"Unauthorized"}')


def test_headers_of_the_leader_are_returned() -> None:
    leadership = FixedLeadership(is_leader=False, leader_url="http://leader")
    with MemoryRegistry(leadership=leadership, forwarder=RefusedByLeader(None)) as follower:
        response = follower.try_register("orders", STRING)
    assert response.error == (401, 401, "Unauthorized")
    assert RefusedByLeader.HEADERS.items() <= dict(response.headers).items()


def test_schema_that_is_there_is_not_forwarded(pair: Pair) -> None:
    pair.follower.register("orders", STRING)
    pair.forwarder.requests.clear()
    assert pair.follower.register("orders", STRING)["id"] == 1
    assert pair.forwarder.requests == []


def test_reads_are_not_forwarded(pair: Pair) -> None:
    pair.follower.get("/subjects")
    assert pair.forwarder.requests == []


def test_forwarded_request_is_not_forwarded_again(pair: Pair) -> None:
    response = pair.follower.request("POST", "/subjects/a/versions", {"schema": STRING}, headers={"X-Forward": "false"})
    assert response.error == (500, 50004, "Leader not known.")
    assert pair.forwarder.requests == []


def test_forwarded_write_is_answered_although_this_instance_lags(pair: Pair) -> None:
    async def lagging() -> None:
        raise StoreTimeout("behind")

    pair.follower.log.catch_up = lagging  # type: ignore[method-assign]
    assert pair.follower.register("orders", STRING)["id"] == 1


def test_leader_that_is_deposed_while_it_decides_does_not_write(registry: MemoryRegistry) -> None:
    registry.log.failure = NotLeader("fenced")
    assert registry.try_register("orders", STRING).error == (500, 50004, "Leader not known.")
    registry.log.failure = None
    assert registry.get("/subjects") == []
