"""`kaspar compact` against a scripted broker: requests, output and exit code."""

from collections.abc import Callable
from uuid import UUID

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.cli.failures import NO_BROKER, NOT_FOUND, USAGE
from kaspar.cli.main import main
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopicResult,
)
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

Result = CompactTopicsPartitionResult
Compact = Callable[[int, int], Result | bytes]
"""The broker's result for a partition, by its index and target offset."""


def broker_with(compact: Compact, *, partitions: int = 1, error: ErrorCode = ErrorCode.NONE) -> ScriptedBroker:
    def respond(header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case MetadataRequest():
                return _metadata(scripted.port, partitions)
            case DescribeTopicPartitionsRequest():
                return _description(partitions, error)
            case CompactTopicsRequest():
                (topic,) = request.topics
                results = [compact(each.partition_index, each.target_offset) for each in topic.partitions]
                if HANG_UP in results:
                    return HANG_UP
                compacted = tuple(result for result in results if isinstance(result, Result))
                return CompactTopicsResponse(topics=(CompactTopicsTopicResult(name=topic.name, partitions=compacted),))
        return None

    scripted = ScriptedBroker(respond)
    return scripted


def _metadata(port: int, partitions: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port),),
        topics=(
            MetadataResponseTopic(
                name="salaries",
                partitions=tuple(
                    MetadataResponsePartition(
                        partition_index=index, leader_id=1, replica_nodes=(1,), isr_nodes=(1,), offline_replicas=()
                    )
                    for index in range(partitions)
                ),
            ),
        ),
    )


def _description(partitions: int, error: ErrorCode) -> DescribeTopicPartitionsResponse:
    described = tuple(
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=1,
            replica_nodes=(1,),
            isr_nodes=(1,),
            eligible_leader_replicas=None,
            last_known_elr=None,
            offline_replicas=(),
        )
        for index in range(partitions)
    )
    topic = DescribeTopicPartitionsResponseTopic(
        error_code=error, name="salaries", topic_id=UUID(int=7), partitions=described
    )
    return DescribeTopicPartitionsResponse(topics=(topic,))


def compact(broker: ScriptedBroker, *more: str) -> int:
    return main(["compact", "salaries", "--bootstrap-server", f"127.0.0.1:{broker.port}", *more])


def test_asks_until_the_target_is_reached_and_shows_what_that_brought(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    def result_of(index: int, target: int) -> Result:
        asked.append(target)
        progress = len(asked) - 1
        return Result(
            partition_index=index,
            target_offset=300,
            first_dirty_offset=100 * (progress + 1),
            log_end_offset=300,
            size_bytes=[5_000_000, 2_000_000, 900][progress],
            records_removed=7 + 1500 * progress,
        )

    with broker_with(result_of) as broker:
        assert compact(broker) == 0
    assert asked == [-1, 300, 300]
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "partition"
    assert row.split() == ["salaries-0", "5.0", "MB", "900", "B", "3,000"]


def test_asks_only_about_the_partitions_that_are_named_and_not_done() -> None:
    asked: list[int] = []

    def result_of(index: int, target: int) -> Result:
        asked.append(index)
        return Result(partition_index=index, target_offset=9, first_dirty_offset=9 if index == 2 or target == 9 else 0)

    with broker_with(result_of, partitions=4) as broker:
        assert compact(broker, "--partitions", "3,2,3") == 0
    assert asked == [2, 3, 3]


def test_offsets_that_are_not_compacted_yet_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    done = Result(partition_index=0, target_offset=10, first_dirty_offset=10, log_end_offset=1_250)
    with broker_with(lambda index, target: done) as broker:
        assert compact(broker) == 0
    assert "salaries-0: the last 1,240 offsets are not compacted yet, because min.compaction.lag.ms" in (
        capsys.readouterr().out
    )


def test_error_is_reported_once_for_all_its_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    def result_of(index: int, target: int) -> Result:
        if index == 1:
            return Result(partition_index=1, target_offset=4, first_dirty_offset=4)
        return Result(partition_index=index, error_code=ErrorCode.CORRUPT_MESSAGE, error_message="it is damaged")

    with broker_with(result_of, partitions=3) as broker:
        assert compact(broker) == 1
    output = capsys.readouterr()
    assert output.err == "kaspar: salaries-0, salaries-2: it is damaged\n"
    assert "salaries-1" in output.out


def test_timeout_says_that_the_broker_continues(capsys: pytest.CaptureFixture[str]) -> None:
    never = Result(partition_index=0, target_offset=10, first_dirty_offset=3)
    with broker_with(lambda index, target: never) as broker:
        assert compact(broker, "--timeout", "0.01") == 1
    assert "timed out; the broker continues compacting" in capsys.readouterr().err


def test_broker_that_closes_the_connection_may_not_be_kaspar(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_with(lambda index, target: HANG_UP) as broker:
        assert compact(broker) == 1
    assert "not a Kaspar broker" in capsys.readouterr().err


def test_a_topic_or_partition_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_with(lambda index, target: HANG_UP, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) as broker:
        assert compact(broker) == NOT_FOUND
    assert "there is no topic 'salaries'" in capsys.readouterr().err
    with broker_with(lambda index, target: HANG_UP, partitions=2) as broker:
        assert compact(broker, "--partitions", "1,2") == NOT_FOUND
    assert capsys.readouterr().err == "kaspar: salaries has partitions 0 to 1, not 2\n"


def test_unreachable_broker_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_with(lambda index, target: HANG_UP) as broker:
        port = broker.port
    assert main(["compact", "salaries", "--bootstrap-server", f"127.0.0.1:{port}"]) == NO_BROKER
    assert f"no broker responds at 127.0.0.1:{port}" in capsys.readouterr().err
    assert main(["compact", "salaries", "--bootstrap-server", "nowhere"]) == USAGE
    assert "nowhere is not a list of host:port" in capsys.readouterr().err
