"""Observations for the tests of checks: a healthy cluster of three brokers, and ways to change it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.monitor.doctor.access import Access
from kaspar.monitor.doctor.checks import load
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import (
    BrokerSeen,
    CertificateSeen,
    ClockSeen,
    FeaturesSeen,
    GroupSeen,
    LogDirSeen,
    LogEnds,
    Observation,
    PageSeen,
)
from kaspar.monitor.scraping.exposition import Sample

START_MS = 1_800_000_000_000
EVERY_MS = 10_000
GIB = 1 << 30
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ORDERS = TopicPartition("orders", 0)
_TOPICS = {"orders": 3, "payments": 3, "__consumer_offsets": 3, "__transaction_state": 3, "_schemas": 1}
_TOPIC_SETTINGS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": str(7 * DAY_MS),
    "segment.bytes": str(GIB),
    "segment.ms": str(7 * DAY_MS),
    "unclean.leader.election.enable": "false",
}
_BROKER_SETTINGS = {
    "advertised.listeners": "SASL_SSL://kafka.example.com:9092",
    "allow.everyone.if.no.acl.found": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "auto.create.topics.enable": "true",
    "default.replication.factor": "3",
    "listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    "listeners": "SASL_SSL://0.0.0.0:9092,INSIDE://127.0.0.1:9093",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.max.timeout.ms": "900000",
    "transaction.state.log.replication.factor": "3",
    "unclean.leader.election.enable": "false",
}


def partition(
    number: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, leader: int | None = None
) -> PartitionDescription:
    return PartitionDescription(
        number, replicas[0] if leader is None else leader, 1, replicas, replicas if isr is None else isr, ()
    )


def topic(name: str, *partitions: PartitionDescription) -> TopicDescription:
    return TopicDescription(name, UUID(int=hash(name) & 0xFFFF), name.startswith("__"), partitions)


def spread_topic(name: str, count: int) -> TopicDescription:
    """With three replicas, whose leaders are spread."""
    rings = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
    return topic(name, *(partition(number, rings[number % 3]) for number in range(count)))


def page(**values: float) -> PageSeen:
    """A page of an idle broker, with these values in place of its own, by the names of load.py."""
    named = {
        load.HANDLERS_IDLE: 0.99,
        load.NETWORK_IDLE: 0.98,
        load.LONGEST_STALL: 0.02,
        load.START_TIME: START_MS / 1000 - 3600,
        load.OPEN_FILES: 200.0,
        load.MAX_FILES: 20_000.0,
        load.DEAD_CLEANERS: 0.0,
        load.COMPACTION_DELAY: 0.0,
    } | {getattr(load, name): value for name, value in values.items()}
    families = {name: (Sample(name, {}, value),) for name, value in named.items()}
    families[load.TOTAL_TIME] = (Sample(load.TOTAL_TIME, {"request": "Produce", "quantile": "0.99"}, 12.0),)
    families[load.UNCLEANABLE] = (Sample(load.UNCLEANABLE, {"logDirectory": "/data"}, 0.0),)
    return PageSeen(families)


def with_family(seen: PageSeen, family: str, labels: Mapping[str, str], value: float) -> PageSeen:
    return PageSeen({**seen.families, family: (Sample(family, labels, value),)})


def look(at_s: int = 0) -> Observation:
    """One at a healthy cluster, so many seconds after the first: producers write, and the group reads."""
    at_ms = START_MS + at_s * 1000
    topics = {name: spread_topic(name, count) for name, count in _TOPICS.items()}
    sizes = {TopicPartition(name, number): 1000 + at_s for name, count in _TOPICS.items() for number in range(count)}
    compacted = {**_TOPIC_SETTINGS, "cleanup.policy": "compact"}
    return Observation(
        at_ms=at_ms,
        access=Access("kafka:9092", ("-b", "kafka:9092")),
        controller_id=1,
        brokers={broker_id: BrokerSeen(broker_id, f"kafka{broker_id}", 9092) for broker_id in (1, 2, 3)},
        topics=topics,
        log_dirs={broker_id: (LogDirSeen("/data", False, 1000 * GIB, 500 * GIB, sizes),) for broker_id in (1, 2, 3)},
        newest_timestamps={ORDERS: at_ms + 1000},
        groups={"billing": GroupSeen("Stable", {ORDERS: 1000 + 10 * at_s}, members=1)},
        ends={ORDERS: LogEnds(100, 1005 + 10 * at_s, 1005 + 10 * at_s, 500)},
        broker_settings=dict.fromkeys((1, 2, 3), _BROKER_SETTINGS),
        topic_settings={name: compacted if name.startswith("_") else _TOPIC_SETTINGS for name in _TOPICS},
        features={
            broker_id: FeaturesSeen({"group.version": 1}, {"group.version": 1}, frozenset({(0, 13), (1, 18)}))
            for broker_id in (1, 2, 3)
        },
        certificates=(CertificateSeen(1, "SASL_SSL://kafka1:9092", at_ms + 200 * DAY_MS),),
        pages=dict.fromkeys((1, 2, 3), page()),
        clocks={broker_id: ClockSeen(-100 * broker_id, 510, "its metrics page") for broker_id in (1, 2, 3)},
    )


def looks(change: Callable[[Observation], Observation] = lambda seen: seen, count: int = 7) -> Looks:
    """A minute of looks at a healthy cluster, each of them changed."""
    return Looks(tuple(change(look(10 * number)) for number in range(count)))


def seconds(seen: Observation) -> int:
    """Since the first look."""
    return (seen.at_ms - START_MS) // 1000


def with_topic(seen: Observation, changed: TopicDescription, **settings: str) -> Observation:
    """With a topic in place of the one with its name, or besides the others. Underscores in settings are dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    own = {**_TOPIC_SETTINGS, **seen.topic_settings.get(changed.name, {}), **named}
    return replace(
        seen,
        topics={**seen.topics, changed.name: changed},
        topic_settings={**seen.topic_settings, changed.name: own},
    )


def with_settings(seen: Observation, **settings: str) -> Observation:
    """With settings of all brokers. Underscores are dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return replace(seen, broker_settings={broker: {**own, **named} for broker, own in seen.broker_settings.items()})


def with_page(seen: Observation, changed: PageSeen) -> Observation:
    return replace(seen, pages={**seen.pages, 2: changed})


def with_group(seen: Observation, group: GroupSeen, ends: LogEnds | None = None, *, name: str = "late") -> Observation:
    changed = seen if ends is None else replace(seen, ends={**seen.ends, ORDERS: ends})
    return replace(changed, groups={**seen.groups, name: group})


def with_log_dir(seen: Observation, changed: LogDirSeen) -> Observation:
    """On broker 2."""
    return replace(seen, log_dirs={**seen.log_dirs, 2: (changed,)})
