"""A client of a whole cluster: finds the leader of a partition, and goes on looking while an answer says to try again.

What it knows of the brokers is asked for anew once one of them could not be reached or did not answer: it may be gone.
It moves whole record batches: produce() takes one as it is to be stored, fetch() gives back the bytes that are stored.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client.blocking import Connection
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages import fetch, list_offsets, metadata, produce
from kaspar.protocol.schema import Message

AnyAnswer = TypeVar("AnyAnswer", bound=Message)
_Result = TypeVar("_Result")

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

_BACKOFF_S = 0.05
_FIRST_VERSION_WITH_TOPIC_ID = 13  # of Produce and of Fetch
_SENT_AT_ONCE = 100  # so that neither side waits for the other with its buffers full


class TopicReplaced(KasparError):
    """A topic was deleted, and made anew under its name."""


class Client:
    """Not for several threads at once."""

    def __init__(self, bootstrap_servers: str, *, client_id: str = "kaspar", timeout_s: float = 30.0) -> None:
        """`bootstrap_servers` are the addresses of some brokers: host:port,host:port."""
        self.client_id = client_id
        self.timeout_s = timeout_s
        self._bootstrap = [_address(entry) for entry in bootstrap_servers.split(",") if entry.strip()]
        self._connections: dict[tuple[str, int], Connection] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._has_lost_one = False  # of the brokers, since their metadata was asked for
        self._leaders: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._controller_id = -1
        self.coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        """Where the coordinators are that client/coordinators.py has found: by the kind of key and the key."""

    # --- any request --------------------------------------------------------------------------------------------------

    def request(self, message: Message, answer_class: type[AnyAnswer], version: int | None = None) -> AnyAnswer:
        """Ask the first broker that takes the connection. What was sent is not sent again if the answer fails."""
        failure: OSError = ConnectionError("no bootstrap server was given")
        # Those with a connection come first: a machine that is gone would cost the time of a connect each time.
        for address in sorted(
            [*self._brokers.values(), *self._bootstrap], key=lambda each: each not in self._connections
        ):
            try:
                self._connection(address)
            except OSError as error:
                failure = error
                continue
            return self._ask(address, message, answer_class, version)
        raise failure

    def request_controller(
        self, message: Message, answer_class: type[AnyAnswer], version: int | None = None
    ) -> AnyAnswer:
        """Ask the controller, which makes and changes topics; Refused (NOT_CONTROLLER) while there is none."""
        if self._has_lost_one or self._controller_id not in self._brokers:
            self.refresh_metadata([])
        if self._controller_id not in self._brokers:
            raise Refused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self._ask(self._brokers[self._controller_id], message, answer_class, version)

    def request_broker(
        self, broker_id: int, message: Message, answer_class: type[AnyAnswer], version: int | None = None
    ) -> AnyAnswer:
        """Ask that broker; Refused (BROKER_NOT_AVAILABLE) if it is not there, by the word of the others."""
        if self._has_lost_one or broker_id not in self._brokers:
            self.refresh_metadata([])
        if broker_id not in self._brokers:
            raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster now")
        return self._ask(self._brokers[broker_id], message, answer_class, version)

    def request_at(
        self, address: tuple[str, int], message: Message, answer_class: type[AnyAnswer], version: int | None = None
    ) -> AnyAnswer:
        """Ask whoever listens at that host and port."""
        return self._ask(address, message, answer_class, version)

    def request_all_at(
        self,
        address: tuple[str, int],
        messages: Sequence[Message],
        answer_class: type[AnyAnswer],
        version: int | None = None,
    ) -> list[AnyAnswer]:
        """Send many small requests before the first of their answers is waited for."""
        answers: list[AnyAnswer] = []
        with self._connected(address) as connection:
            for first in range(0, len(messages), _SENT_AT_ONCE):
                sent = messages[first : first + _SENT_AT_ONCE]
                for message in sent:
                    connection.send(message, version)
                for _ in sent:
                    answer = connection.receive().message
                    assert isinstance(answer, answer_class)
                    answers.append(answer)
        return answers

    # --- metadata -----------------------------------------------------------------------------------------------------

    def refresh_metadata(self, topics: list[str] | None) -> metadata.MetadataResponse:
        """Ask who leads what: for these topics, or for all (None). Makes no topic."""
        wanted = None if topics is None else tuple(metadata.MetadataRequestTopic(name=name) for name in topics)
        response = self.request(
            metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False), metadata.MetadataResponse
        )
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self._has_lost_one = False
        self._controller_id = response.controller_id
        for topic in response.topics:
            if topic.name is None:
                continue
            self._topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                self._leaders[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
        return response

    def broker_ids(self) -> list[int]:
        """The brokers of the cluster, as far as is known: none was lost since its metadata was asked for."""
        if self._has_lost_one or not self._brokers:
            self.refresh_metadata([])
        return list(self._brokers)

    def leader_of(self, partition: TopicPartition) -> int:
        """The id of the broker that leads the partition; Refused if there is none."""
        if self._has_lost_one or self._leaders.get(partition, -1) not in self._brokers:
            response = self.refresh_metadata([partition.topic])
            for topic in response.topics:
                _refuse(topic.error_code, f"the metadata of {topic.name}")
        leader = self._leaders.get(partition)
        if leader is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} is not a partition of the cluster")
        if leader not in self._brokers:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
        return leader

    def forget_leader(self, partition: TopicPartition) -> None:
        """Look for it anew the next time: an answer said that it has moved, or there was none."""
        self._leaders.pop(partition, None)

    def topic_id_of(self, topic: str) -> UUID:
        """As the metadata asked for last has it; zero from a broker that knows no ids."""
        return self._topic_ids.get(topic, ZERO_UUID)

    def connect(self, broker_id: int, *, records_in_place: bool = False) -> Connection:
        """A connection of the caller's own, for requests that are sent before the last is answered."""
        host, port = self._brokers[broker_id]
        return Connection(
            host, port, client_id=self.client_id, timeout_s=self.timeout_s, records_in_place=records_in_place
        )

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
    ) -> produce.PartitionProduceResponse | None:
        """Append one record batch. With acks 0 there is no answer, and None is returned. TopicReplaced, if the topic is
        not the one with that id any more.

        Where an answer was lost the batch is sent again: it may be stored twice, unless an idempotent producer made it.
        """
        where = TopicPartition(topic, partition)

        def attempt(leader: int) -> produce.PartitionProduceResponse | None:
            self._check_topic_id(topic, topic_id, leader, ApiKey.PRODUCE)
            message = produce.ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=int(self.timeout_s * 1000),
                topic_data=(
                    produce.TopicProduceData(
                        name=topic,
                        topic_id=self._topic_ids.get(topic, ZERO_UUID),
                        partition_data=(produce.PartitionProduceData(index=partition, records=batch),),
                    ),
                ),
            )
            if acks == 0:
                with self._connected(self._brokers[leader]) as connection:
                    connection.send(message, answered=False)
                return None
            answer = self._ask(self._brokers[leader], message, produce.ProduceResponse)
            found = answer.responses[0].partition_responses[0]
            _refuse(found.error_code, found.error_message or f"producing to {where}")
            return found

        return self._at_leader(where, attempt)

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
    ) -> fetch.PartitionData:
        """The batches from the one with that offset on: `records` may start before it and end in mid-batch.
        TopicReplaced, if the topic is not the one with that id any more."""
        where = TopicPartition(topic, partition)

        def attempt(leader: int) -> fetch.PartitionData:
            self._check_topic_id(topic, topic_id, leader, ApiKey.FETCH)
            message = fetch.FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                isolation_level=isolation_level,
                topics=(
                    fetch.FetchTopic(
                        topic=topic,
                        topic_id=self._topic_ids.get(topic, ZERO_UUID),
                        partitions=(
                            fetch.FetchPartition(
                                partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
                            ),
                        ),
                    ),
                ),
            )
            answer = self._ask(self._brokers[leader], message, fetch.FetchResponse)
            _refuse(answer.error_code, f"fetching from {where}")
            if not answer.responses:  # a quota holds the client back
                raise Refused(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"fetching from {where}: the client's quota is used up"
                )
            found = answer.responses[0].partitions[0]
            _refuse(found.error_code, f"fetching from {where}")
            return found

        return self._at_leader(where, attempt)

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int:
        """The first offset at or after a timestamp (or one of the special ones above); -1 if there is none."""
        where = TopicPartition(topic, partition)

        def attempt(leader: int) -> int:
            asked = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            message = list_offsets.ListOffsetsRequest(
                replica_id=-1, topics=(list_offsets.ListOffsetsTopic(name=topic, partitions=(asked,)),)
            )
            answer = self._ask(self._brokers[leader], message, list_offsets.ListOffsetsResponse)
            found = answer.topics[0].partitions[0]
            _refuse(found.error_code, f"looking up an offset of {where}")
            return found.offset

        return self._at_leader(where, attempt)

    # --- the way there ------------------------------------------------------------------------------------------------

    def _at_leader(self, partition: TopicPartition, attempt: Callable[[int], _Result]) -> _Result:
        """Try at the leader until the answer is final, looking for the leader anew after each failure that may pass."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return attempt(self.leader_of(partition))
            except Refused as refusal:
                if refusal.code not in RETRIABLE or time.monotonic() > deadline:
                    raise
            except OSError:  # also of a host that is gone, and of its name
                if time.monotonic() > deadline:
                    raise
            self.forget_leader(partition)
            time.sleep(_BACKOFF_S)

    def _check_topic_id(self, topic: str, expected: UUID | None, leader: int, api_key: ApiKey) -> None:
        """A request that names the topic by its id is refused where that is gone, and metadata is asked for anew before
        it is sent again. For one that names it by its name they are asked for now."""
        if expected is None:
            return
        if self._connection(self._brokers[leader]).core.version_of(api_key) < _FIRST_VERSION_WITH_TOPIC_ID:
            self.refresh_metadata([topic])
        if self._topic_ids.get(topic, ZERO_UUID) not in (expected, ZERO_UUID):
            raise TopicReplaced(f"the topic {topic} was deleted, and made anew")

    def _ask(
        self, address: tuple[str, int], message: Message, answer_class: type[AnyAnswer], version: int | None = None
    ) -> AnyAnswer:
        if version is not None:
            self._connection(address).core.check_serves(ApiKey(message.SCHEMA.api_key), version)
        with self._connected(address) as connection:
            answer = connection.request(message, version)
        assert isinstance(answer, answer_class), f"{type(message).__name__} is not answered by {answer_class.__name__}"
        return answer

    @contextmanager
    def _connected(self, address: tuple[str, int]) -> Iterator[Connection]:
        """A connection that is closed if its use fails: an answer still to come would be taken for another's."""
        connection = self._connection(address)
        try:
            yield connection
        except BaseException as failure:
            self._has_lost_one |= isinstance(failure, OSError)
            self._connections.pop(address).close()
            raise

    def _connection(self, address: tuple[str, int]) -> Connection:
        connection = self._connections.get(address)
        if connection is None:
            try:
                connection = Connection(*address, client_id=self.client_id, timeout_s=self.timeout_s)
            except OSError:
                self._has_lost_one = True
                raise
            self._connections[address] = connection
        return connection

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _refuse(error_code: int, what: str) -> None:
    if error_code != ErrorCode.NONE:
        code = ErrorCode(error_code)
        raise Refused(code, f"{what}: {code.name}")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    return host.strip("[]"), int(port)
