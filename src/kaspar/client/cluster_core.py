"""A client's view of the cluster, and the choice of the broker for each request: decisions for both shells, as steps
(client/steps.py).

After a broker could not be reached or did not respond, the metadata is refreshed before its next use, because the
broker may have left the cluster. A request for a partition is sent to its leader until the response is final or the
time is up; errors that Kafka calls retriable are retried with new metadata.

Record batches are opaque bytes here: produce() takes a batch as it is stored, fetch() returns the stored bytes.
Messages that few clients send are imported where they are used, so that command line tools start faster.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client.core import REQUEST_TIMEOUT_S, ClientCore
from kaspar.client.steps import Address, AnyResponse, Connect, Send, SendAll, SendOnly, Step, Steps, Wait
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages import metadata
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.protocol.messages.fetch import PartitionData
    from kaspar.protocol.messages.produce import PartitionProduceResponse

_Result = TypeVar("_Result")

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3

RETRY_BACKOFF_S: Final = 0.05
_FIRST_VERSION_WITH_TOPIC_ID: Final = 13  # of Produce and of Fetch
_SENT_AT_ONCE: Final = 100  # few enough that full buffers on both sides cannot cause a deadlock
_MAX_COORDINATORS: Final = 10_000  # a long-lived client looks up new keys all the time


class TopicReplaced(KasparError):
    """The topic was deleted, and another one was created with its name."""


class ClusterCore:
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        is_connected: Callable[[Address], bool] = lambda address: False,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`bootstrap_servers` is Kafka's setting: host:port,host:port. `is_connected` returns whether the shell has a
        connection to a broker."""
        self.timeout_s = timeout_s
        self.clock_s = clock_s
        self._is_connected = is_connected
        self._bootstrap = [_address(entry) for entry in bootstrap_servers.split(",") if entry.strip()]
        self._brokers: dict[int, Address] = {}
        self._has_lost_broker = False  # since the last metadata
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._controller_id = -1
        self._coordinators: dict[tuple[int, str], Address] = {}

    # --- any request --------------------------------------------------------------------------------------------------

    def request(
        self, message: Message, response_class: type[AnyResponse], version: int | None = None
    ) -> Steps[AnyResponse]:
        """Send a request to the first broker that accepts a connection. It is not resent if its response is lost."""
        failure: OSError = ConnectionError("no bootstrap server was given")
        # Brokers with a connection come first, because a host that is down would cost a connect timeout each time.
        for address in sorted(
            [*self._brokers.values(), *self._bootstrap], key=lambda each: not self._is_connected(each)
        ):
            try:
                yield from self.connect(address)
            except OSError as error:
                failure = error
                continue
            return (yield from self.request_at(address, message, response_class, version))
        raise failure

    def request_controller(
        self, message: Message, response_class: type[AnyResponse], version: int | None = None
    ) -> Steps[AnyResponse]:
        """Send a request to the controller. Raises Refused (NOT_CONTROLLER) while there is none."""
        if self._has_lost_broker or self._controller_id not in self._brokers:
            yield from self.refresh_metadata([])
        if self._controller_id not in self._brokers:
            raise Refused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        address = self._brokers[self._controller_id]
        return (yield from self.request_at(address, message, response_class, version))

    def request_broker(
        self, broker_id: int, message: Message, response_class: type[AnyResponse], version: int | None = None
    ) -> Steps[AnyResponse]:
        """Send a request to a broker. Raises Refused (BROKER_NOT_AVAILABLE) if it is not in the cluster's metadata."""
        if self._has_lost_broker or broker_id not in self._brokers:
            yield from self.refresh_metadata([])
        if broker_id not in self._brokers:
            raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster now")
        return (yield from self.request_at(self._brokers[broker_id], message, response_class, version))

    def request_at(
        self, address: Address, message: Message, response_class: type[AnyResponse], version: int | None = None
    ) -> Steps[AnyResponse]:
        """Send a request to the broker at this address."""
        if version is not None:
            (yield from self.connect(address)).check_serves(ApiKey(message.SCHEMA.api_key), version)
        response = yield from self._at_broker(Send(address, message, version))
        assert isinstance(response, response_class)
        return response

    def request_all_at(
        self,
        address: Address,
        messages: Sequence[Message],
        response_class: type[AnyResponse],
        version: int | None = None,
    ) -> Steps[list[AnyResponse]]:
        """Send many small requests to the broker at this address, pipelined."""
        responses: list[AnyResponse] = []
        for first in range(0, len(messages), _SENT_AT_ONCE):
            step = SendAll(address, messages[first : first + _SENT_AT_ONCE], version)
            for response in (yield from self._at_broker(step)):
                assert isinstance(response, response_class)
                responses.append(response)
        return responses

    def connect(self, address: Address) -> Steps[ClientCore]:
        """Connect to the broker at this address, unless there is a connection."""
        core = yield from self._at_broker(Connect(address))
        assert isinstance(core, ClientCore)
        return core

    def _at_broker(self, step: Step) -> Steps[Any]:
        """The result of the step. If the broker cannot be reached, the metadata is refreshed before its next use."""
        try:
            return (yield step)
        except OSError:
            self._has_lost_broker = True
            raise

    # --- metadata -----------------------------------------------------------------------------------------------------

    def refresh_metadata(self, topics: list[str] | None) -> Steps[metadata.MetadataResponse]:
        """Request the brokers, and the leaders of these topics or of all (None). Does not create topics."""
        wanted = None if topics is None else tuple(metadata.MetadataRequestTopic(name=name) for name in topics)
        response = yield from self.request(
            metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False), metadata.MetadataResponse
        )
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self._has_lost_broker = False
        self._controller_id = response.controller_id
        for topic in response.topics:
            if topic.name is None:
                continue
            self._topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                self._leaders[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
        return response

    def broker_ids(self) -> Steps[list[int]]:
        """The brokers in the cluster's metadata."""
        if self._has_lost_broker or not self._brokers:
            yield from self.refresh_metadata([])
        return list(self._brokers)

    def address_of(self, broker_id: int) -> Address:
        """The address of a broker that `leader_of` or `broker_ids` returned."""
        return self._brokers[broker_id]

    def leader_of(self, partition: TopicPartition) -> Steps[int]:
        """The id of the broker that leads the partition. Raises Refused if there is none."""
        if self._has_lost_broker or self._leaders.get(partition, -1) not in self._brokers:
            response = yield from self.refresh_metadata([partition.topic])
            for topic in response.topics:
                refuse(topic.error_code, f"metadata of topic {topic.name}")
        leader = self._leaders.get(partition)
        if leader is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the cluster has no partition {partition}")
        if leader not in self._brokers:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
        return leader

    def forget_leader(self, partition: TopicPartition) -> None:
        """Forget the leader, which has moved or did not respond: it is looked up again before the next use."""
        self._leaders.pop(partition, None)

    def topic_id_of(self, topic: str) -> UUID:
        """The topic's id in the last metadata; zero if the broker has no topic ids."""
        return self._topic_ids.get(topic, ZERO_UUID)

    # --- coordinators (their rules: client/coordinators.py) -----------------------------------------------------------

    def coordinator_of(self, key_type: int, key: str) -> Address | None:
        """The last known address of the key's coordinator, or None."""
        return self._coordinators.get((key_type, key))

    def set_coordinator(self, key_type: int, key: str, address: Address) -> None:
        if len(self._coordinators) >= _MAX_COORDINATORS:
            self._coordinators.clear()
        self._coordinators[key_type, key] = address

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Forget the coordinator: it is looked up again before the next use."""
        self._coordinators.pop((key_type, key), None)

    # --- batches ------------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        partition: int,
        batch: bytes,
        *,
        acks: int = -1,
        transactional_id: str | None = None,
        topic_id: UUID | None = None,
    ) -> Steps["PartitionProduceResponse | None"]:
        """Append one record batch. With acks=0 there is no response, and None is returned. Raises TopicReplaced if the
        topic no longer has the given id.

        If a response is lost, the batch is sent again, and may be stored twice unless it has an idempotent producer's
        id.
        """
        from kaspar.protocol.messages import produce

        where = TopicPartition(topic, partition)

        def attempt(leader: Address) -> Steps["PartitionProduceResponse | None"]:
            yield from self._check_topic_id(topic, topic_id, leader, ApiKey.PRODUCE)
            message = produce.ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=int(self.timeout_s * 1000),
                topic_data=(
                    produce.TopicProduceData(
                        name=topic,
                        topic_id=self.topic_id_of(topic),
                        partition_data=(produce.PartitionProduceData(index=partition, records=batch),),
                    ),
                ),
            )
            if acks == 0:
                yield from self._at_broker(SendOnly(leader, message))
                return None
            response = yield from self.request_at(leader, message, produce.ProduceResponse)
            found = response.responses[0].partition_responses[0]
            refuse(found.error_code, found.error_message or f"producing to {where}")
            return found

        return (yield from self._at_leader(where, attempt))

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = 1024 * 1024,
        min_bytes: int = 1,
        max_wait_ms: int = 500,
        isolation_level: int = 0,
        topic_id: UUID | None = None,
    ) -> Steps["PartitionData"]:
        """Fetch batches, beginning with the one that contains the offset: `records` may start before the offset and end
        in the middle of a batch. Raises TopicReplaced if the topic no longer has the given id."""
        from kaspar.protocol.messages import fetch

        where = TopicPartition(topic, partition)

        def attempt(leader: Address) -> Steps["PartitionData"]:
            yield from self._check_topic_id(topic, topic_id, leader, ApiKey.FETCH)
            message = fetch.FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                isolation_level=isolation_level,
                topics=(
                    fetch.FetchTopic(
                        topic=topic,
                        topic_id=self.topic_id_of(topic),
                        partitions=(
                            fetch.FetchPartition(
                                partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
                            ),
                        ),
                    ),
                ),
            )
            response = yield from self.request_at(leader, message, fetch.FetchResponse)
            refuse(response.error_code, f"fetching from {where}")
            if not response.responses:  # the broker throttles this client
                raise Refused(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"fetching from {where}: the client's quota is used up"
                )
            found = response.responses[0].partitions[0]
            refuse(found.error_code, f"fetching from {where}")
            return found

        return (yield from self._at_leader(where, attempt))

    def offset_at(self, topic: str, partition: int, timestamp: int) -> Steps[int]:
        """The first offset at or after a timestamp, or for one of the special timestamps above; -1 if there is none."""
        from kaspar.protocol.messages import list_offsets

        where = TopicPartition(topic, partition)
        asked = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        message = list_offsets.ListOffsetsRequest(
            replica_id=-1, topics=(list_offsets.ListOffsetsTopic(name=topic, partitions=(asked,)),)
        )
        response = yield from self.request_leader(
            where,
            message,
            list_offsets.ListOffsetsResponse,
            code_of=lambda each: each.topics[0].partitions[0].error_code,
        )
        found = response.topics[0].partitions[0]
        refuse(found.error_code, f"listing offsets of {where}")
        return found.offset

    # --- requests to leaders ------------------------------------------------------------------------------------------

    def request_leader(
        self,
        partition: TopicPartition,
        message: Message,
        response_class: type[AnyResponse],
        version: int | None = None,
        *,
        code_of: Callable[[AnyResponse], int],
    ) -> Steps[AnyResponse]:
        """The leader's response. If its error code is retriable, or the response is lost, the request is sent again;
        the caller handles other error codes. Raises Refused or OSError when the time is up.
        """

        def attempt(leader: Address) -> Steps[AnyResponse]:
            response = yield from self.request_at(leader, message, response_class, version)
            code = code_of(response)
            if code in RETRIABLE:
                refuse(code, f"{type(message).__name__} for {partition}")
            return response

        return (yield from self._at_leader(partition, attempt))

    def _at_leader(self, partition: TopicPartition, attempt: Callable[[Address], Steps[_Result]]) -> Steps[_Result]:
        deadline = self.clock_s() + self.timeout_s
        while True:
            try:
                leader = yield from self.leader_of(partition)
                return (yield from attempt(self._brokers[leader]))
            except Refused as refusal:
                if refusal.code not in RETRIABLE or self.clock_s() > deadline:
                    raise
            except OSError:  # includes an unreachable host, and a name that cannot be resolved
                if self.clock_s() > deadline:
                    raise
            self.forget_leader(partition)
            yield Wait(RETRY_BACKOFF_S)

    def _check_topic_id(self, topic: str, expected: UUID | None, leader: Address, api_key: ApiKey) -> Steps[None]:
        """Raise TopicReplaced if the topic's id is not the expected one. If requests have topic ids, the broker refuses
        that of a deleted topic, and the retry has new metadata. If they have names, new metadata is needed first."""
        if expected is None:
            return
        core = yield from self.connect(leader)
        if core.version_of(api_key) < _FIRST_VERSION_WITH_TOPIC_ID:
            yield from self.refresh_metadata([topic])
        if self.topic_id_of(topic) not in (expected, ZERO_UUID):
            raise TopicReplaced(f"topic {topic} was deleted and recreated")


def refuse(error_code: int, what: str) -> None:
    """Raise Refused unless the code is NONE."""
    if error_code != ErrorCode.NONE:
        code = ErrorCode(error_code)
        raise Refused(code, f"{what}: {code.name}")


def _address(text: str) -> Address:
    host, _, port = text.strip().rpartition(":")
    return host.strip("[]"), int(port)
