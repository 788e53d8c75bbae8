"""Verifies partitions that this broker leads with transaction coordinators on other brokers (KIP-890), like Kafka's
AddPartitionsToTxnManager.

Requests of all producers to the coordinators on one broker are batched. If the request fails (no connection, no
response), the result is NETWORK_EXCEPTION, on which producers retry; a partition that was added without this broker
learning of it gets a marker that ends nothing.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.batched_calls import BatchedCalls
from kaspar.broker.peers import Peers
from kaspar.broker.services import CurrentSettings, Tasks
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

Codes: TypeAlias = dict[TopicPartition, ErrorCode]

_TOP_LEVEL: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE}
"""The error for producers if the coordinator refuses a whole request."""


class Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: tuple[TopicPartition, ...]
    add: bool

    def all(self, code: ErrorCode) -> Codes:
        return dict.fromkeys(self.partitions, code)

    def to_wire(self) -> AddPartitionsToTxnTransaction:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            by_topic.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            verify_only=not self.add,
            topics=tuple(
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items()
            ),
        )


class RemoteVerification:
    def __init__(self, peers: Peers, settings: CurrentSettings, tasks: Tasks) -> None:
        self._peers = peers
        self._settings = settings
        self._calls = BatchedCalls[Question, Codes](
            self._send, identity=lambda question: question.transactional_id, tasks=tasks, name="verification"
        )

    async def ask(self, coordinator: BrokerId, question: Question) -> Codes:
        """Send a question once. While the previous transaction is completed, `add` gets CONCURRENT_TRANSACTIONS."""
        return await self._calls.call(coordinator, question)

    async def _send(self, coordinator: BrokerId, questions: Sequence[Question]) -> list[Codes]:
        request = AddPartitionsToTxnRequest(transactions=tuple(question.to_wire() for question in questions))
        within_s = self._settings.config.request_timeout_ms / 1000
        try:
            response = await self._peers.request(coordinator, request, AddPartitionsToTxnResponse, within_s=within_s)
        except Refused as refusal:
            return [question.all(refusal.code) for question in questions]
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            return [question.all(_TOP_LEVEL.get(code, code)) for question in questions]
        results = {result.transactional_id: result for result in response.results_by_transaction}
        return [_codes(question, results.get(question.transactional_id)) for question in questions]


def _codes(question: Question, result: AddPartitionsToTxnResult | None) -> Codes:
    """The result for each partition. One that the response does not mention is not verified."""
    codes = question.all(ErrorCode.UNKNOWN_SERVER_ERROR)
    for topic in () if result is None else result.topic_results:
        for each in topic.results_by_partition:
            partition = TopicPartition(topic.name, each.partition_index)
            if partition in codes:
                codes[partition] = ErrorCode(each.partition_error_code)
    return codes
