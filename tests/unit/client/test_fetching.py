"""Fetching ahead from a scripted broker."""

import uuid
from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client import Client
from kaspar.client import fetching as module
from kaspar.client.fetching import EndOutOfReach, Fetched, OffsetGone, TopicRecreated, fetch_ahead
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.messages import describe_configs, fetch, list_offsets, metadata
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.schema import Message
from kaspar.records import Record, build_batch
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

PARTITION = TopicPartition("topic", 0)
GIVES_UP_S = 2  # long enough for a busy machine to respond
TOPIC_ID = uuid.UUID(int=7)
OTHER_TOPIC_ID = uuid.UUID(int=8)


def batch_at(offset: int, count: int = 10) -> bytes:
    return bytes(build_batch([Record(0, None, b"v" * 100)] * count, base_offset=offset))


class OneLog:
    """A cluster of one broker with one log: batches of ten records. `next_responses` are used first, each once."""

    def __init__(self, batches: int = 5) -> None:
        self.port = 0
        self.topic_id = TOPIC_ID
        self.batches = {10 * number: batch_at(10 * number) for number in range(batches)}
        self.log_start = 0
        self.high_watermark = 10 * batches
        self.last_stable_offset = 10 * batches
        self.aborted: tuple[fetch.AbortedTransaction, ...] | None = None
        self.batches_per_response = 2
        self.next_responses: list[int | bytes | fetch.FetchResponse] = []
        self.fetches: list[fetch.FetchPartition] = []

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case metadata.MetadataRequest():
                return self._metadata()
            case list_offsets.ListOffsetsRequest():
                earliest = request.topics[0].partitions[0].timestamp == -2
                found = list_offsets.ListOffsetsPartitionResponse(
                    partition_index=0, offset=self.log_start if earliest else self.high_watermark
                )
                topic = list_offsets.ListOffsetsTopicResponse(name="topic", partitions=(found,))
                return list_offsets.ListOffsetsResponse(topics=(topic,))
            case describe_configs.DescribeConfigsRequest():
                refused = describe_configs.DescribeConfigsResult(
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    error_message=None,
                    resource_type=2,
                    resource_name="topic",
                    configs=(),
                )
                return describe_configs.DescribeConfigsResponse(results=(refused,))
            case fetch.FetchRequest():
                return self._fetch(request)
        raise AssertionError(request)

    def _metadata(self) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        topic = metadata.MetadataResponseTopic(name="topic", topic_id=self.topic_id, partitions=(partition,))
        broker = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,), controller_id=1)

    def _fetch(self, request: fetch.FetchRequest) -> Message | bytes:
        asked = request.topics[0].partitions[0]
        self.fetches.append(asked)
        if self.next_responses:
            response = self.next_responses.pop(0)
            return response if not isinstance(response, int) else self._response(error_code=response)
        if request.topics[0].topic_id != self.topic_id:
            return self._response(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        if not self.log_start <= asked.fetch_offset <= self.high_watermark:
            return self._response(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        upper = self.last_stable_offset if request.isolation_level else self.high_watermark
        found = [data for offset, data in self.batches.items() if asked.fetch_offset - 10 < offset < upper]
        return self._response(records=b"".join(found[: self.batches_per_response]))

    def _response(self, *, error_code: int = 0, records: bytes | None = None) -> fetch.FetchResponse:
        found = fetch.PartitionData(
            partition_index=0,
            error_code=error_code,
            high_watermark=-1 if error_code else self.high_watermark,
            last_stable_offset=-1 if error_code else self.last_stable_offset,
            log_start_offset=-1 if error_code else self.log_start,
            aborted_transactions=self.aborted,
            records=records,
        )
        topic = fetch.FetchableTopicResponse(topic_id=self.topic_id, partitions=(found,))
        return fetch.FetchResponse(responses=(topic,))


@pytest.fixture
def log() -> OneLog:
    return OneLog()


@pytest.fixture
def broker(log: OneLog) -> Iterator[ScriptedBroker]:
    with ScriptedBroker(log) as broker:
        log.port = broker.port
        yield broker


Fetching = Callable[..., Iterator[Fetched]]


@pytest.fixture
def fetching(broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetching]:
    """fetch_ahead with a client that gives up soon, and tries again at once."""
    monkeypatch.setattr(module, "_BACKOFF_S", 0)
    monkeypatch.setattr(module, "_NO_SUCH_TOPIC_S", 0.1)
    with Client(f"127.0.0.1:{broker.port}", timeout_s=GIVES_UP_S) as client:
        yield lambda start, until, **others: fetch_ahead(
            client, PARTITION, start, until=until, **{"max_wait_ms": 0, **others}
        )


def test_range_comes_in_whole_batches_from_the_one_with_its_start(log: OneLog, fetching: Fetching) -> None:
    first, second = fetching(5, 35)
    assert bytes(first.records) == batch_at(0) + batch_at(10)
    assert bytes(second.records) == batch_at(20) + batch_at(30)
    assert [asked.fetch_offset for asked in log.fetches] == [5, 20]
    assert second[2:] == (40, 50, 50, 0)


def test_next_request_is_sent_before_a_response_is_returned(log: OneLog, fetching: Fetching) -> None:
    responses = fetching(0, 50)
    next(responses)
    second = next(responses)  # while the first was handed out, the second came
    assert [asked.fetch_offset for asked in log.fetches][:2] == [0, 20]
    assert second.next_offset == 40
    responses.close()  # type: ignore[attr-defined]


def test_nothing_is_requested_behind_the_range(log: OneLog, fetching: Fetching) -> None:
    assert [fetched.next_offset for fetched in fetching(0, 20)] == [20]
    assert len(log.fetches) == 1
    assert list(fetching(20, 20)) == []
    assert len(log.fetches) == 1


def test_short_range_asks_for_few_bytes(log: OneLog, fetching: Fetching) -> None:
    list(fetching(0, 30))
    first, second = (asked.partition_max_bytes for asked in log.fetches)
    assert second < first < 1024 * 1024
    list(fetching(0, 10, max_bytes=4321))
    assert log.fetches[-1].partition_max_bytes == 4321


def test_part_of_a_batch_at_the_end_is_fetched_again(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [log._response(records=batch_at(0) + batch_at(10)[:50])]
    assert [fetched.next_offset for fetched in fetching(0, 30)] == [10, 30]


def test_range_ends_where_nothing_is_left_below_its_end(log: OneLog, fetching: Fetching) -> None:
    del log.batches[40]  # compacted away
    assert [fetched.next_offset for fetched in fetching(0, 50)] == [20, 40]


def test_committed_reader_goes_to_the_last_stable_offset_and_hears_of_aborted_transactions(
    log: OneLog, fetching: Fetching
) -> None:
    log.aborted = (fetch.AbortedTransaction(producer_id=4, first_offset=12),)
    log.last_stable_offset = 20
    (fetched,) = fetching(0, 20, isolation_level=READ_COMMITTED)
    assert fetched.aborted == ((4, 12),)
    assert [each.aborted for each in fetching(0, 20)] == [()]
    with pytest.raises(EndOutOfReach, match=r"no records from offset 20 to 30 after .*: it can be read up to 20"):
        list(fetching(0, 30, isolation_level=READ_COMMITTED))


def test_end_that_is_not_reached_is_an_error(log: OneLog, fetching: Fetching) -> None:
    responses = fetching(40, 60)
    assert next(responses).next_offset == 50
    with pytest.raises(EndOutOfReach, match=rf"topic-0 has no records from offset \d+ to 60 after {GIVES_UP_S} s"):
        next(responses)


def test_refusal_that_may_pass_and_lost_connections_do_not_end_a_range(
    log: OneLog, broker: ScriptedBroker, fetching: Fetching
) -> None:
    log.next_responses = [ErrorCode.NOT_LEADER_OR_FOLLOWER, HANG_UP, ErrorCode.FENCED_LEADER_EPOCH]
    responses = fetching(0, 50)
    assert next(responses).next_offset == 20
    log.next_responses = [HANG_UP, HANG_UP]
    assert [fetched.next_offset for fetched in responses] == [40, 50]


def test_client_that_is_held_back_by_its_quota_asks_again(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [fetch.FetchResponse(throttle_time_ms=1, responses=())] * 3
    assert [fetched.next_offset for fetched in fetching(0, 20)] == [20]


def test_range_also_ends_after_responses_that_could_not_end_it(log: OneLog, fetching: Fetching) -> None:
    del log.batches[40]  # compacted away
    throttled = fetch.FetchResponse(throttle_time_ms=1, responses=())
    log.next_responses = [throttled, throttled]
    assert list(fetching(40, 50)) == []
    log.next_responses = [log._response(), throttled]
    assert list(fetching(40, 50)) == []


def test_final_refusal_is_raised(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(Refused, match="fetching from topic-0: TOPIC_AUTHORIZATION_FAILED"):
        list(fetching(0, 20))


def test_broker_that_closes_every_connection_is_an_error_after_the_timeout(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [HANG_UP] * 100_000
    with pytest.raises(ConnectionError):
        list(fetching(0, 50))


@pytest.mark.parametrize(("asked", "log_start"), [(0, 30), (55, 0)])
def test_offset_that_the_log_does_not_have_is_gone(log: OneLog, fetching: Fetching, asked: int, log_start: int) -> None:
    log.log_start = log_start
    with pytest.raises(OffsetGone) as gone:
        list(fetching(asked, 60))
    assert (gone.value.partition, gone.value.asked) == (PARTITION, asked)
    assert (gone.value.log_start, gone.value.log_end) == (log_start, 50)


def test_offset_that_a_leader_does_not_have_yet_is_requested_again(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert [fetched.next_offset for fetched in fetching(0, 20)] == [20]


def test_recreated_topic_is_detected(log: OneLog, fetching: Fetching) -> None:
    responses = fetching(0, 50, topic_id=TOPIC_ID)
    log.batches_per_response = 1
    assert next(responses).next_offset == 10
    log.topic_id = OTHER_TOPIC_ID
    with pytest.raises(TopicRecreated, match="topic topic was deleted and recreated") as recreated:
        list(responses)
    assert (recreated.value.expected, recreated.value.found) == (TOPIC_ID, OTHER_TOPIC_ID)
    with pytest.raises(TopicRecreated):
        list(fetching(0, 50, topic_id=TOPIC_ID))


def test_topic_ids_are_not_compared_if_one_side_has_none(log: OneLog, fetching: Fetching) -> None:
    assert [fetched.next_offset for fetched in fetching(0, 20, topic_id=ZERO_UUID)] == [20]
    log.topic_id = ZERO_UUID
    log.next_responses = [log._response(records=batch_at(0))]
    assert [fetched.next_offset for fetched in fetching(0, 10, topic_id=TOPIC_ID)] == [10]


def test_topic_that_does_not_come_back_is_refused_soon(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100_000
    with pytest.raises(Refused) as refused:
        list(fetching(0, 20))
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topic_counts_as_gone_only_if_all_responses_of_some_time_say_so(
    log: OneLog, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()  # the outage takes longer than a topic has to come back
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None))
    not_known = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    log.next_responses = [*[HANG_UP] * 5, *not_known, HANG_UP, HANG_UP, *not_known]
    with Client(f"127.0.0.1:{broker.port}", timeout_s=30) as client:
        assert [fetched.next_offset for fetched in fetch_ahead(client, PARTITION, 0, until=20)] == [20]


def test_response_that_is_no_batches_is_malformed(log: OneLog, fetching: Fetching) -> None:
    log.next_responses = [log._response(records=b"x" * 100)]
    with pytest.raises(MalformedBytes, match=r"topic-0: the batch at offset \d+ is damaged"):
        list(fetching(0, 20))
    log.next_responses = [log._response(records=batch_at(0)[:70])]
    with pytest.raises(MalformedBytes, match="topic-0: the response for offset 0 has no complete batch"):
        list(fetching(0, 20))


# --- a replica that is nearer -----------------------------------------------------------------------------------------


class Follower(OneLog):
    """A second broker with the same log. The leader sends readers of rack "b" to it."""

    def __init__(self, leader: OneLog) -> None:
        super().__init__()
        self.leader = leader

    def _metadata(self) -> metadata.MetadataResponse:
        return self.leader._metadata()


class Leader(OneLog):
    def __init__(self) -> None:
        super().__init__()
        self.followers: dict[int, ScriptedBroker] = {}
        self.racks: list[str] = []

    def _metadata(self) -> metadata.MetadataResponse:
        alone = super()._metadata()
        others = tuple(
            metadata.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=follower.port)
            for number, follower in self.followers.items()
        )
        return metadata.MetadataResponse(brokers=(*alone.brokers, *others), topics=alone.topics, controller_id=1)

    def _fetch(self, request: fetch.FetchRequest) -> Message | bytes:
        self.racks.append(request.rack_id)
        if request.rack_id != "b":
            return super()._fetch(request)
        found = fetch.PartitionData(
            partition_index=0,
            high_watermark=50,
            last_stable_offset=50,
            aborted_transactions=None,
            records=None,
            preferred_read_replica=2,
        )
        topic = fetch.FetchableTopicResponse(topic_id=self.topic_id, partitions=(found,))
        return fetch.FetchResponse(responses=(topic,))


@pytest.fixture
def log_with_follower() -> Iterator[tuple[Leader, Follower]]:
    leader = Leader()
    follower = Follower(leader)
    with ScriptedBroker(leader) as one, ScriptedBroker(follower) as two:
        leader.port = one.port
        leader.followers[2] = two
        yield leader, follower


def all_of(leader: Leader, **others: object) -> list[bytes]:
    with Client(f"127.0.0.1:{leader.port}", timeout_s=5) as client:
        whole = fetch_ahead(client, PARTITION, 0, until=50, max_wait_ms=0, **others)  # type: ignore[arg-type]
        return [bytes(each.records) for each in whole]


WHOLE_LOG = [batch_at(0) + batch_at(10), batch_at(20) + batch_at(30), batch_at(40)]


def test_reader_without_a_rack_stays_with_the_leader(log_with_follower: tuple[Leader, Follower]) -> None:
    leader, follower = log_with_follower
    assert all_of(leader) == WHOLE_LOG
    assert not follower.fetches


def test_reader_in_a_rack_reads_the_replica_that_the_leader_names(log_with_follower: tuple[Leader, Follower]) -> None:
    leader, follower = log_with_follower
    assert all_of(leader, rack="b") == WHOLE_LOG
    assert leader.racks == ["b"]
    assert [asked.fetch_offset for asked in follower.fetches] == [0, 20, 40]


@pytest.mark.parametrize(
    "failure", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, HANG_UP]
)
def test_replica_that_fails_brings_the_reader_back(
    log_with_follower: tuple[Leader, Follower], failure: int | bytes
) -> None:
    leader, follower = log_with_follower
    follower.next_responses = [failure]
    assert all_of(leader, rack="b") == WHOLE_LOG
    assert leader.racks[:2] == ["b", ""]
    assert len(follower.fetches) == 1


def test_replica_that_is_behind_is_left_where_it_ends(log_with_follower: tuple[Leader, Follower]) -> None:
    leader, follower = log_with_follower
    follower.high_watermark = follower.last_stable_offset = 20
    assert all_of(leader, rack="b") == WHOLE_LOG
    assert [asked.fetch_offset for asked in leader.fetches] == [20, 40]


def test_replica_that_is_not_there_is_not_looked_for(log_with_follower: tuple[Leader, Follower]) -> None:
    leader, _ = log_with_follower
    leader.followers.clear()
    assert all_of(leader, rack="b") == WHOLE_LOG
    assert leader.racks[:2] == ["b", ""]


def test_replicas_that_send_a_reader_on_and_on_do_not_keep_it(log_with_follower: tuple[Leader, Follower]) -> None:
    leader, follower = log_with_follower
    sends_on = leader._fetch(fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(), rack_id="b"))
    assert isinstance(sends_on, fetch.FetchResponse)
    leader.racks.clear()
    follower.next_responses = [sends_on]
    assert all_of(leader, rack="b") == WHOLE_LOG
    assert leader.racks[:2] == ["b", ""]
