"""Questions to coordinators and markers to leaders on other brokers: what is sent, and what the responses lead to."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaspar.base.clock import SystemClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, ProducerIdAndEpoch, TopicPartition, random_uuid
from kaspar.broker.coordination.internal_topics import TRANSACTION_STATE
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.coordination.remote_markers import RemoteMarkers
from kaspar.broker.coordination.remote_verification import Question, RemoteVerification
from kaspar.broker.coordination.transaction_routing import TransactionRouting
from kaspar.broker.peers import Peers
from kaspar.broker.services import CurrentSettings, Failures, Tasks
from kaspar.config import BrokerSettings
from kaspar.metadata import BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.images import ImageSource
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
)
from kaspar.protocol.messages.write_txn_fences import TxnFenceResult, WriteTxnFencesRequest, WriteTxnFencesResponse
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kaspar.protocol.schema import Message
from kaspar.transactions.partitions import result_of

ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
P, Q = ProducerIdAndEpoch(7, 3), ProducerIdAndEpoch(8, 0)
SETTINGS = CurrentSettings(BrokerSettings.of({"node.id": "1", "log.dirs": "/nowhere"}))


class Cluster:
    """The other brokers, as `respond` has them respond."""

    def __init__(self, respond: Callable[[Any], Message]) -> None:
        self.sent: list[tuple[BrokerId, Message]] = []
        self.respond = respond
        self.tasks = Tasks(Failures())
        peers = cast(Peers, SimpleNamespace(request=self.request))
        self.verification = RemoteVerification(peers, SETTINGS, self.tasks)
        self.markers = RemoteMarkers(peers, SETTINGS, self.tasks)

    async def request(
        self, broker_id: BrokerId, message: Message, response_class: type[Message], **named: object
    ) -> Message:
        self.sent.append((broker_id, message))
        response = self.respond(message)
        assert isinstance(response, response_class)
        return response


def unreachable(message: Message) -> Message:
    raise Refused(ErrorCode.NETWORK_EXCEPTION, "the connection is lost")


# -- verification ------------------------------------------------------------------------------------------------------


def results(codes: dict[str, ErrorCode]) -> Callable[[AddPartitionsToTxnRequest], AddPartitionsToTxnResponse]:
    def respond(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        def result(transaction: Any) -> AddPartitionsToTxnResult:
            partitions = [TopicPartition(topic.name, each) for topic in transaction.topics for each in topic.partitions]
            return result_of(
                transaction.transactional_id, dict.fromkeys(partitions, codes[transaction.transactional_id])
            )

        return AddPartitionsToTxnResponse(results_by_transaction=tuple(map(result, request.transactions)))

    return respond


def test_the_questions_of_all_producers_to_one_coordinator_are_one_request() -> None:
    async def scene() -> None:
        cluster = Cluster(results({"one": ErrorCode.NONE, "two": ErrorCode.PRODUCER_FENCED}))
        one, two = await asyncio.gather(
            cluster.verification.ask(OTHER, Question("one", P, (A0, A1, B0), add=True)),
            cluster.verification.ask(OTHER, Question("two", Q, (A0,), add=False)),
        )
        assert one == dict.fromkeys((A0, A1, B0), ErrorCode.NONE)
        assert two == {A0: ErrorCode.PRODUCER_FENCED}
        ((broker_id, request),) = cluster.sent
        assert broker_id == OTHER
        assert isinstance(request, AddPartitionsToTxnRequest)
        first, second = request.transactions
        assert (first.transactional_id, first.producer_id, first.producer_epoch, first.verify_only) == (
            "one",
            7,
            3,
            False,
        )
        assert [(topic.name, topic.partitions) for topic in first.topics] == [("a", (0, 1)), ("b", (0,))]
        assert (second.transactional_id, second.verify_only) == ("two", True)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("respond", "code"),
    [
        (unreachable, ErrorCode.NETWORK_EXCEPTION),
        (lambda _: AddPartitionsToTxnResponse(error_code=31), ErrorCode.INVALID_TXN_STATE),
        (lambda _: AddPartitionsToTxnResponse(error_code=15), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (lambda _: AddPartitionsToTxnResponse(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_a_response_does_not_confirm_is_not_confirmed(
    respond: Callable[[Message], Message], code: ErrorCode
) -> None:
    async def scene() -> None:
        asked = Cluster(respond).verification.ask(OTHER, Question("one", P, (A0, A1), add=True))
        assert await asked == dict.fromkeys((A0, A1), code)

    asyncio.run(scene())


# -- markers -----------------------------------------------------------------------------------------------------------


def marker(kind: MarkerKind = MarkerKind.COMMIT, producer: ProducerIdAndEpoch = P) -> Marker:
    return Marker(kind, producer, 5, 2)


def markers_written(code: ErrorCode) -> Callable[[WriteTxnMarkersRequest], WriteTxnMarkersResponse]:
    def respond(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=each.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=code if index else ErrorCode.NONE
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in each.topics
                    ),
                )
                for each in request.markers
            )
        )

    return respond


def test_the_markers_of_all_transactions_for_one_broker_are_one_request() -> None:
    async def scene() -> None:
        cluster = Cluster(markers_written(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        give = cluster.markers.give
        first, second, third, fourth = await asyncio.gather(
            give(OTHER, A0, marker()),
            give(OTHER, A1, marker()),
            give(OTHER, A0, marker(MarkerKind.ABORT, Q)),
            give(THIRD, B0, marker()),
        )
        assert [first, third, fourth] == [ErrorCode.NONE] * 3
        assert second is ErrorCode.NOT_LEADER_OR_FOLLOWER
        (broker_id, request), (another, _) = cluster.sent
        assert (broker_id, another) == (OTHER, THIRD)
        assert isinstance(request, WriteTxnMarkersRequest)
        sent = [
            (each.producer_id, each.producer_epoch, each.transaction_result, each.coordinator_epoch, each.topics)
            for each in request.markers
        ]
        assert [row[:4] for row in sent] == [(7, 3, True, 5), (8, 0, False, 5)]
        assert sent[0][4][0].partition_indexes == (0, 1)
        assert all(each.transaction_version == 2 for each in request.markers)

    asyncio.run(scene())


def test_fences_have_a_request_of_their_own() -> None:
    async def scene() -> None:
        codes = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS)
        results = tuple(TxnFenceResult(error_code=code) for code in codes)
        cluster = Cluster(lambda request: WriteTxnFencesResponse(results=results))
        fence = marker(MarkerKind.FENCE)
        given = await asyncio.gather(cluster.markers.give(OTHER, A0, fence), cluster.markers.give(OTHER, A1, fence))
        assert tuple(given) == codes
        ((_, request),) = cluster.sent
        assert isinstance(request, WriteTxnFencesRequest)
        assert [(each.topic, each.partition_index) for each in request.fences] == [A0, A1]
        assert {(each.producer_id, each.producer_epoch, each.coordinator_epoch) for each in request.fences} == {
            (7, 3, 5)
        }

    asyncio.run(scene())


@pytest.mark.parametrize("kind", list(MarkerKind))
def test_a_broker_that_does_not_respond_has_taken_no_marker_as_far_as_is_known(kind: MarkerKind) -> None:
    async def scene() -> None:
        assert await Cluster(unreachable).markers.give(OTHER, A0, marker(kind)) is ErrorCode.NETWORK_EXCEPTION

    asyncio.run(scene())


# -- the way there -----------------------------------------------------------------------------------------------------


def topic(name: str, *leaders: BrokerId) -> TopicImage:
    partitions = tuple(PartitionImage((leader,), (leader,), leader, LeaderEpoch(0), 0) for leader in leaders)
    return TopicImage(name, random_uuid(), partitions)


class Routed:
    def __init__(self, *topics: TopicImage, up: tuple[BrokerId, ...] = (ME, OTHER)) -> None:
        image = ClusterImage("cluster", brokers={each: BrokerRegistration(each, 0, ()) for each in up})
        self.image = image.with_topics({each.name: each for each in topics})
        self.here: list[object] = []
        self.there: list[BrokerId] = []
        self.codes: list[ErrorCode] = []
        self.routing = TransactionRouting(
            ME,
            cast(ImageSource, SimpleNamespace(current=self.image)),
            SETTINGS,
            verify_here=self.verify_here,
            give_here=self.give_here,
            listener=lambda: "PLAINTEXT",
            tasks=Tasks(Failures()),
            clock=SystemClock(),
        )
        self.routing._verification = cast(RemoteVerification, SimpleNamespace(ask=self.ask))
        self.routing._markers = cast(RemoteMarkers, SimpleNamespace(give=self.give_there))

    async def verify_here(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition], *, add: bool
    ) -> dict[TopicPartition, ErrorCode]:
        self.here.append(transactional_id)
        return {}

    async def give_here(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        self.here.append(partition)
        return ErrorCode.NONE

    async def ask(self, broker_id: BrokerId, question: Question) -> dict[TopicPartition, ErrorCode]:
        self.there.append(broker_id)
        return question.all(self.codes.pop(0) if self.codes else ErrorCode.NONE)

    async def give_there(self, broker_id: BrokerId, partition: TopicPartition, marker: Marker) -> ErrorCode:
        self.there.append(broker_id)
        return ErrorCode.NONE


async def verified(routed: Routed, *, add: bool = True) -> Mapping[TopicPartition, ErrorCode]:
    return await routed.routing.verify("t-id", P, [A0], add=add)


def test_the_leader_of_the_ids_partition_is_asked() -> None:
    async def scene() -> None:
        at_home = Routed(topic(TRANSACTION_STATE, ME))
        await verified(at_home)
        assert (len(at_home.here), at_home.there) == (1, [])
        away = Routed(topic(TRANSACTION_STATE, OTHER))
        assert await verified(away) == {A0: ErrorCode.NONE}
        assert (away.here, away.there) == ([], [OTHER])

    asyncio.run(scene())


@pytest.mark.parametrize("leaders", [(), (THIRD,), (BrokerId(-1),)])
def test_without_a_coordinator_the_producer_is_to_retry(leaders: tuple[BrokerId, ...]) -> None:
    async def scene() -> None:
        routed = Routed(topic(TRANSACTION_STATE, *leaders)) if leaders else Routed()
        assert await verified(routed) == {A0: ErrorCode.COORDINATOR_NOT_AVAILABLE}

    asyncio.run(scene())


def test_while_the_transaction_before_is_being_completed_its_coordinator_is_asked_again() -> None:
    async def scene() -> None:
        routed = Routed(topic(TRANSACTION_STATE, OTHER))
        routed.codes = [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
        assert await verified(routed) == {A0: ErrorCode.NONE}
        assert routed.there == [OTHER] * 3
        routed.codes = [ErrorCode.CONCURRENT_TRANSACTIONS] * 100
        assert await verified(routed) == {A0: ErrorCode.CONCURRENT_TRANSACTIONS}, "not for ever"
        routed.codes = [ErrorCode.CONCURRENT_TRANSACTIONS]
        assert await verified(routed, add=False) == {A0: ErrorCode.CONCURRENT_TRANSACTIONS}

    asyncio.run(scene())


def test_a_marker_goes_to_the_partitions_leader() -> None:
    async def scene() -> None:
        routed = Routed(topic("a", ME, OTHER), topic("b", THIRD))
        give = routed.routing.give
        assert await give(A0, marker()) is ErrorCode.NONE
        assert (routed.here, routed.there) == ([A0], [])
        assert await give(A1, marker()) is ErrorCode.NONE
        assert routed.there == [OTHER]
        assert await give(B0, marker()) is ErrorCode.LEADER_NOT_AVAILABLE

    asyncio.run(scene())
