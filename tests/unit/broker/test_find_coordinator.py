"""FindCoordinator names the leader of the partition that a key belongs to, and has the internal topic made at first."""

import subprocess
import sys
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from kaspar.broker.handlers.find_coordinator import CoordinatorType
from kaspar.broker.server import Broker
from kaspar.broker.wiring import SERVED
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tests.unit.broker.running import Client, run, running

GROUP, TRANSACTION, SHARE = CoordinatorType
NO_COORDINATOR = (-1, "", -1)
TOPICS: dict[int, str] = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}


async def ask(broker: Broker, version: int, key_type: int, *keys: str) -> FindCoordinatorResponse:
    client = Client(broker)
    client.send(FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=keys), version=version)
    return await client.response(FindCoordinatorResponse)


def place(response: FindCoordinatorResponse | Coordinator) -> tuple[int, str, int]:
    return response.node_id, response.host, response.port


@pytest.mark.parametrize("key_type", TOPICS)
def test_the_first_request_creates_the_topic_and_gets_a_response(tmp_path: Path, key_type: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            assert TOPICS[key_type] not in broker.image.topics
            response = await ask(broker, 3, key_type, "mine")
            assert (response.error_code, place(response)) == (ErrorCode.NONE, (1, "127.0.0.1", broker.port))
            topic = broker.image.topics[TOPICS[key_type]]
            assert (len(topic.partitions), topic.replication_factor) == (50, 1)
            assert topic.configs["cleanup.policy"] == "compact"

    run(scenario())


def test_the_topics_are_made_with_kafkas_settings(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {"offsets_topic_num_partitions": "3", "offsets_topic_segment_bytes": "5000000"}
        async with running(tmp_path, **settings) as broker:
            await ask(broker, 3, GROUP, "mine")
            await ask(broker, 3, TRANSACTION, "mine")
            offsets, transactions = broker.image.topics[CONSUMER_OFFSETS], broker.image.topics[TRANSACTION_STATE]
            assert len(offsets.partitions) == 3
            assert offsets.configs == {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "5000000",
            }
            assert transactions.configs == {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            }

    run(scenario())


@pytest.mark.parametrize("version", range(7))
def test_one_key_gets_one_response_and_several_a_response_each(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path, offsets_topic_num_partitions="1") as broker:
            response = await ask(broker, version, GROUP, "one", "two")
            here = (1, "127.0.0.1", broker.port)
            if version < 4:
                assert place(response) == here
            else:
                assert [(each.key, place(each)) for each in response.coordinators] == [("one", here), ("two", here)]

    run(scenario())


def test_a_kind_that_the_version_does_not_know_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            share = await ask(broker, 5, SHARE, "one")
            other = await ask(broker, 1, 7, "one")
            assert share.coordinators[0].error_code == other.error_code == ErrorCode.INVALID_REQUEST
            assert place(other) == place(share.coordinators[0]) == NO_COORDINATOR
            assert not broker.image.topics

    run(scenario())


def test_share_groups_get_the_response_for_a_missing_topic(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            response = await ask(broker, 6, SHARE, "group", "group:AAAAAAAAAAAAAAAAAAAAAQ:0")
            assert [each.error_code for each in response.coordinators] == [
                ErrorCode.INVALID_REQUEST,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ]

    run(scenario())


def test_a_broker_whose_log_directory_takes_no_partition_has_no_coordinator_to_offer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, cordoned_log_dirs="*") as broker:
            response = await ask(broker, 3, GROUP, "mine")
            assert response.error_code == ErrorCode.NONE  # the topic exists, and its logs are made when there is room
            assert broker.groups.runtime.active_shards() == {}

    run(scenario())


def test_it_is_announced_from_version_0_which_librdkafka_looks_for() -> None:
    served = SERVED[ApiKey.FIND_COORDINATOR]
    assert (served.first_version, served.last_version) == (0, 6)


def test_a_broker_that_nobody_asks_for_a_coordinator_loads_nothing_of_them() -> None:
    program = (
        "import sys, kaspar.broker.run\n"
        "print([name for name in sys.modules if name.startswith(('kaspar.groups', 'kaspar.transactions', 're2'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
