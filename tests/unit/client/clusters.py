"""Scripted clusters of one broker, for the tests of both shells."""

import uuid

from kaspar.base.errors import ErrorCode
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import fetch, list_offsets, metadata, produce
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

TOPIC_ID = uuid.UUID(int=7)


class OnePartition:
    """One broker that leads partition 0 of `topic`. `refusals` are the error codes of the next responses."""

    def __init__(self) -> None:
        self.port = 0
        self.others: dict[int, int] = {}  # brokers beside it, and their ports
        self.controller_id = 1
        self.refusals: list[int] = []
        self.hang_ups = 0
        self.throttled = 0
        self.batches: list[bytes] = []

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case metadata.MetadataRequest():
                return self._metadata(request)
            case produce.ProduceRequest():
                return self._produce(request)
            case fetch.FetchRequest():
                return self._fetch(request)
            case list_offsets.ListOffsetsRequest():
                found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=len(self.batches))
                topic = list_offsets.ListOffsetsTopicResponse(name="topic", partitions=(found,))
                return list_offsets.ListOffsetsResponse(topics=(topic,))
        raise AssertionError(request)

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        known = metadata.MetadataResponseTopic(name="topic", topic_id=TOPIC_ID, partitions=(partition,))
        topics = [known]
        if request.topics and request.topics[0].name != "topic":
            topics = [metadata.MetadataResponseTopic(error_code=17, name=request.topics[0].name, partitions=())]
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
            for node_id, port in {**self.others, 1: self.port}.items()
        )
        return metadata.MetadataResponse(brokers=brokers, topics=tuple(topics), controller_id=self.controller_id)

    def _produce(self, request: produce.ProduceRequest) -> Message | bytes | None:
        if self.hang_ups:
            self.hang_ups -= 1
            return HANG_UP
        (data,) = request.topic_data[0].partition_data
        assert request.topic_data[0].topic_id == TOPIC_ID
        error_code = self.refusals.pop(0) if self.refusals else 0
        if not error_code:
            assert data.records is not None
            self.batches.append(data.records)
        if request.acks == 0:
            return None
        response = produce.PartitionProduceResponse(index=0, error_code=error_code, base_offset=len(self.batches) - 1)
        topic = produce.TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=(response,))
        return produce.ProduceResponse(responses=(topic,))

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        if self.throttled:
            self.throttled -= 1
            return fetch.FetchResponse(throttle_time_ms=1, responses=())
        offset = request.topics[0].partitions[0].fetch_offset
        error_code = 1 if offset > len(self.batches) else 0
        found = fetch.PartitionData(
            partition_index=0,
            error_code=error_code,
            high_watermark=len(self.batches),
            aborted_transactions=None,
            records=b"".join(self.batches[offset:]),
        )
        topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(found,))
        return fetch.FetchResponse(responses=(topic,))


def served_by(cluster: OnePartition) -> ScriptedBroker:
    broker = ScriptedBroker(cluster)
    cluster.port = broker.port
    return broker


class OneCoordinator:
    """The coordinator of all keys. `responses` and `found` are the next error codes; None closes the connection."""

    def __init__(self) -> None:
        self.port = 0
        self.responses: list[ErrorCode | None] = []
        self.found: list[ErrorCode] = []
        self.looked_for: list[tuple[int, str]] = []
        self.asked = 0

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case FindCoordinatorRequest():
                key = request.coordinator_keys[0]
                self.looked_for.append((request.key_type, key))
                code = self.found.pop(0) if self.found else ErrorCode.NONE
                there = Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port, error_code=code)
                return FindCoordinatorResponse(coordinators=(there,))
            case EndTxnRequest():
                self.asked += 1
                response = self.responses.pop(0) if self.responses else ErrorCode.NONE
                return HANG_UP if response is None else EndTxnResponse(error_code=response)
        raise AssertionError(f"not scripted: {request}")
