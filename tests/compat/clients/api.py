"""What a scenario may ask of a client that stays, whichever it is.

    consumer = client.consumer("group", "topic", assignor="range")      a member, which polls by itself from then on
    consumer.look()                                                     what it has seen: assignment, records, error
    producer = client.producer("transactional-id")                      ready to begin
    transformer = client.transformer("group", "from", "to", "id")       consume, transform, produce, again and again
    client.groups()                                                     what the admin client reports

All clients speak these words over JSON lines, so this is the only face. Settings are the client's own defaults, apart
from what the words say and from intervals, which are short so that tests are. An offset is (topic, partition, offset,
metadata). Values are text. What a client cannot do is in its `cannot`, with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Literal

from tests.compat.drivers.lines import LinesProcess

Protocol = Literal["classic", "consumer"]
Isolation = Literal["read_uncommitted", "read_committed"]
Partition = tuple[str, int]
CommittedOffset = tuple[str, int, int, str]

SESSION_TIMEOUT_MS = 6_000  # the least that a broker takes by default
TRANSACTION_TIMEOUT_MS = 60_000
# Of a transformer: franz-go asks for its producer id, which ends what a crash left open, only when it has records; it
# gets none before that transaction is over, so its successor waits for the timeout, at either broker.
TRANSFORMER_TIMEOUT_MS = 10_000


class Feature(Enum):
    """What some client cannot do."""

    COMMIT = "commit on request"
    COMMIT_METADATA = "commit words beside an offset"
    ASYNC_COMMIT = "commit without waiting"
    SEEK = "move its position while it is a member"
    RESET_NONE = "end with an error where nothing is committed"
    RESET_BY_DURATION = "start at an age"
    STATIC_MEMBER = "be a static member"
    FENCED_INSTANCE = "report that another member has its instance id"
    RELEASED_INSTANCE = "let go of its instance id under KIP-848"
    NEW_PATTERN_TOPICS = "find a topic made after it subscribed to a pattern"
    CONSUMER_PROTOCOL = "the protocol of KIP-848"
    UNCHECKED_PATTERN = "leave it to the broker to check a pattern"
    LIST_GROUPS = "list and describe groups"
    DELETE_GROUPS = "delete groups"
    SET_OFFSETS = "alter the offsets of a group"
    DELETE_OFFSETS = "delete the offsets of a group"
    TRANSACTIONS = "produce in transactions"
    READ_COMMITTED = "leave out what was aborted"
    COMPACTED_TRANSACTIONS = "read what compaction has left of transactions"
    BROKER_RESTART = "go on when its only broker was restarted"
    TRANSFORM_AFTER_RESTART = "send offsets to a transaction after its only broker was restarted"


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    group: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    protocol: Protocol = "classic"
    assignor: str | None = None  # the client's own default; of the broker with the protocol "consumer"
    instance_id: str | None = None
    reset: str = "earliest"
    auto_commit: bool = False
    isolation: Isolation = "read_uncommitted"
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    heartbeat_interval_ms: int = 500  # of classic members; the broker says it to the others
    metadata_max_age_ms: int = 500  # how soon a pattern meets a new topic
    auto_commit_interval_ms: int = 200


@dataclass(frozen=True, slots=True)
class Consumed:
    topic: str
    partition: int
    offset: int
    value: str


@dataclass(slots=True)
class Seen:
    """What a consumer has seen since it was opened."""

    assignment: set[Partition] = field(default_factory=set)
    rebalances: int = 0  # how often it was given partitions, or the news that it has none
    records: list[Consumed] = field(default_factory=list)
    error: str | None = None  # it has given up

    @property
    def values(self) -> list[str]:
        return [record.value for record in self.records]


@dataclass(frozen=True, slots=True)
class GroupMember:
    client_id: str
    instance_id: str | None
    assignment: frozenset[Partition]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    state: str  # in Kafka's words: Stable, Empty...
    assignor: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class ClientKind:
    name: str
    command: Callable[[str], Sequence[str]]  # of its process, for bootstrap servers
    assignors: tuple[str, ...]  # of the classic protocol
    cannot: Mapping[Feature, str]

    def can(self, features: Sequence[Feature]) -> bool:
        return not any(feature in self.cannot for feature in features)


class Consumer:
    def __init__(self, process: LinesProcess, options: ConsumerOptions) -> None:
        self.group = options.group
        self._process = process
        self._id = process.call("consumer_open", **asdict(options))
        self._seen = Seen()
        self._open = True

    def look(self) -> Seen:
        news = self._process.call("consumer_look", consumer=self._id, after=len(self._seen.records))
        self._seen.assignment = {(topic, partition) for topic, partition in news["assignment"]}
        self._seen.rebalances = news["rebalances"]
        self._seen.records += [Consumed(*record) for record in news["records"]]
        self._seen.error = news["error"]
        return self._seen

    def commit(self, offsets: Sequence[CommittedOffset] | None = None, *, wait: bool = True) -> None:
        """Commit these offsets, or the end of all that was handed out."""
        self._process.call("consumer_commit", consumer=self._id, offsets=offsets, wait=wait)

    def committed(self, *partitions: Partition) -> dict[Partition, int]:
        """Without those that have none."""
        rows = self._process.call("consumer_committed", consumer=self._id, places=partitions)
        return {(topic, partition): offset for topic, partition, offset in rows if offset >= 0}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._process.call("consumer_seek", consumer=self._id, topic=topic, partition=partition, offset=offset)

    def close(self) -> None:
        """Leave the group, unless it is a static member. Safe to call twice."""
        if self._open:
            self._open = False
            self._process.call("consumer_close", consumer=self._id)


class Producer:
    """A transactional producer that was initialised. A refusal is a ClientError with Kafka's name."""

    def __init__(self, process: LinesProcess, transactional_id: str, timeout_ms: int) -> None:
        self._process = process
        self._id = process.call("producer_open", transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        self._open = True

    def begin(self) -> None:
        self._process.call("producer_begin", producer=self._id)

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        """Returns when the records are acknowledged."""
        self._process.call("producer_send", producer=self._id, topic=topic, partition=partition, values=values)

    def commit(self) -> None:
        self._process.call("producer_commit", producer=self._id)

    def abort(self) -> None:
        self._process.call("producer_abort", producer=self._id)

    def close(self) -> None:
        """Safe to call twice."""
        if self._open:
            self._open = False
            self._process.call("producer_close", producer=self._id)


@dataclass(frozen=True, slots=True)
class Transformed:
    committed: int
    aborted: int
    error: str | None


class Transformer:
    """Writes every value that it reads, in upper case, to the same partition of another topic, in transactions."""

    def __init__(self, process: LinesProcess, words: Mapping[str, object]) -> None:
        self._process = process
        self._id = process.call("transformer_open", **words)
        self._open = True

    def look(self) -> Transformed:
        return Transformed(**self._process.call("transformer_look", transformer=self._id))

    def close(self) -> None:
        """Safe to call twice."""
        if self._open:
            self._open = False
            self._process.call("transformer_close", transformer=self._id)


class Client:
    """One process of a client. `close` ends what was opened in it and then the process."""

    def __init__(self, kind: ClientKind, bootstrap: str) -> None:
        self.kind = kind
        self._process = LinesProcess(kind.name, kind.command(bootstrap))

    @property
    def running(self) -> bool:
        return self._process.running

    def consumer(self, group: str, *topics: str, **options: Any) -> Consumer:
        """The options are those of ConsumerOptions."""
        return Consumer(self._process, ConsumerOptions(group, topics, **options))

    def producer(self, transactional_id: str, *, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> Producer:
        return Producer(self._process, transactional_id, timeout_ms)

    def transformer(
        self,
        group: str,
        source: str,
        target: str,
        transactional_id: str,
        *,
        protocol: Protocol = "classic",
        abort_first: bool = False,
    ) -> Transformer:
        """With `abort_first` it aborts its first transaction and reads the same records again."""
        options = ConsumerOptions(group, [source], protocol=protocol, isolation="read_committed")
        words = {
            "target": target,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": TRANSFORMER_TIMEOUT_MS,
            "abort_first": abort_first,
        }
        return Transformer(self._process, {**asdict(options), **words})

    def groups(self) -> dict[str, str | None]:
        """The state of every group, where the client reports it."""
        return dict(self._process.call("group_list"))

    def describe_group(self, group: str) -> GroupDescription:
        described = self._process.call("group_describe", group=group)
        members = [
            GroupMember(each["client_id"], each["instance_id"], frozenset((t, p) for t, p in each["assignment"]))
            for each in described["members"]
        ]
        return GroupDescription(described["state"], described["assignor"], tuple(members))

    def delete_group(self, group: str) -> None:
        self._process.call("group_delete", group=group)

    def group_offsets(self, group: str) -> list[CommittedOffset]:
        """Sorted."""
        return _offsets(self._process.call("group_offsets", group=group))

    def set_group_offsets(self, group: str, *offsets: CommittedOffset) -> None:
        self._process.call("group_set_offsets", group=group, offsets=offsets)

    def delete_group_offsets(self, group: str, *partitions: Partition) -> None:
        self._process.call("group_delete_offsets", group=group, places=partitions)

    def close(self) -> None:
        self._process.close()

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()


def _offsets(rows: Sequence[Sequence[object]]) -> list[CommittedOffset]:
    offsets = [(str(topic), int(str(p)), int(str(o)), str(metadata or "")) for topic, p, o, metadata in rows]
    return sorted(offset for offset in offsets if offset[2] >= 0)
