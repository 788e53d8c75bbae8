"""For every check, looks at a cluster that has its fault and no other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.monitor.doctor.checks import load
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import (
    CertificateSeen,
    ClockSeen,
    FeaturesSeen,
    GroupSeen,
    HangingTransactionSeen,
    LogDirSeen,
    LogEnds,
    Observation,
    OpenTransactionSeen,
)
from kaspar.quotas.entities import QuotaEntity
from tests.unit.monitor.doctor.observations import (
    DAY_MS,
    GIB,
    HOUR_MS,
    ORDERS,
    START_MS,
    look,
    looks,
    page,
    partition,
    seconds,
    spread_topic,
    topic,
    with_family,
    with_group,
    with_log_dir,
    with_page,
    with_settings,
    with_topic,
)


@dataclass(frozen=True, slots=True)
class Faulty:
    looks: Looks
    resource: str
    detail: str
    """Part of it."""
    command: str | None
    """Part of it; None if there is none."""
    also: tuple[str, ...] = ()
    """Codes of what follows from the same fault."""


def _changed(change: Callable[[Observation], Observation], resource: str, detail: str, command: str | None) -> Faulty:
    return Faulty(looks(change), resource, detail, command)


def _without_broker_2(seen: Observation) -> Observation:
    return replace(
        seen,
        brokers={broker_id: each for broker_id, each in seen.brokers.items() if broker_id != 2},
        log_dirs={broker_id: each for broker_id, each in seen.log_dirs.items() if broker_id != 2},
        topics={
            name: replace(
                each,
                partitions=tuple(
                    replace(one, isr=tuple(isr := [i for i in one.replicas if i != 2]), leader=isr[0])
                    for one in each.partitions
                ),
            )
            for name, each in seen.topics.items()
        },
    )


def _out_of_sync(seen: Observation) -> Observation:
    """Broker 3 has a replica that is not in sync."""
    return with_topic(seen, topic("orders", partition(0, (1, 2, 3), isr=(1, 2))))


def _stuck(seen: Observation) -> Observation:
    sizes = {ORDERS: 5000 + 100 * seconds(seen)}
    dirs = {broker: (LogDirSeen("/data", False, None, None, sizes),) for broker in (1, 2)}
    return replace(_out_of_sync(seen), log_dirs={**dirs, 3: (LogDirSeen("/data", False, None, None, {ORDERS: 4000}),)})


def _many(seen: Observation, replicas: tuple[int, ...], count: int = 40) -> Observation:
    return with_topic(seen, topic("many", *(partition(number, replicas) for number in range(count))))


def _group(
    state: str, commit_rate: int, *, members: int | None = 1, idle: int = 0
) -> Callable[[Observation], Observation]:
    """A group that is behind, and commits so many records a second; ten a second arrive."""

    def change(seen: Observation) -> Observation:
        at_s = seconds(seen)
        group = GroupSeen(state, {ORDERS: 600 + commit_rate * at_s}, members, idle)
        return with_group(seen, group)

    return change


def _transaction(seen: Observation) -> Observation:
    start_ms = START_MS - 10 * 60_000
    return replace(seen, transactions=(OpenTransactionSeen("payments-1", "Ongoing", start_ms, 900_000, (ORDERS,)),))


def _clock(ahead_ms: int) -> Callable[[Observation], Observation]:
    return lambda seen: replace(seen, clocks={**seen.clocks, 2: ClockSeen(ahead_ms, 510, "its metrics page")})


def _older_broker(seen: Observation) -> Observation:
    older = FeaturesSeen({"group.version": 1}, {"group.version": 1}, frozenset({(0, 12), (1, 18)}))
    return replace(seen, features={**seen.features, 2: older})


def _newer_features(seen: Observation) -> Observation:
    newer = FeaturesSeen({"group.version": 2}, {"group.version": 1}, frozenset({(0, 13), (1, 18)}))
    return replace(seen, features=dict.fromkeys(seen.features, newer))


def _certificate(days: int) -> Callable[[Observation], Observation]:
    return lambda seen: replace(seen, certificates=(CertificateSeen(1, "SSL://k:9092", seen.at_ms + days * DAY_MS),))


def _misspelt(seen: Observation) -> Observation:
    changed = with_topic(seen, spread_topic("paymnets", 1))
    directory = seen.log_dirs[1][0]
    with_empty = replace(directory, sizes={**directory.sizes, TopicPartition("paymnets", 0): 0})
    return replace(changed, log_dirs=dict.fromkeys((1, 2, 3), (with_empty,)))


def _full_log(seen: Observation) -> Observation:
    changed = with_topic(seen, seen.topics["orders"], retention_bytes="1100")
    return with_group(changed, GroupSeen("Empty", {ORDERS: 150}), LogEnds(100, 2000, 2000, None))


FAULTY: Final[Mapping[str, tuple[Faulty, ...]]] = {
    "no-controller": (
        _changed(lambda seen: replace(seen, controller_id=-1), "cluster", "No broker is", "kafka-server-start"),
    ),
    "broker-down": (
        Faulty(
            looks(_without_broker_2),
            "broker 2",
            "is not in the cluster, and 13 replicas",
            "kafka-server-start",
            also=("under-replicated",),
        ),
        _changed(
            lambda seen: replace(
                seen, brokers={**seen.brokers, 4: replace(seen.brokers[1], broker_id=4, is_fenced=True)}
            ),
            "broker 4",
            "is registered and fenced, and 0 replicas",
            "kafka-server-start",
        ),
    ),
    "broker-silent": (
        _changed(
            lambda seen: replace(seen, brokers={**seen.brokers, 2: replace(seen.brokers[2], is_responding=False)}),
            "broker 2",
            "requests to it fail or time out",
            "kafka-server-start",
        ),
    ),
    "offline-partitions": (
        _changed(
            lambda seen: with_topic(seen, topic("lone", partition(0, (2, 3, 1), leader=-1))),
            "partitions",
            "1 partition without a leader: lone-0",
            "kafka-server-start",
        ),
    ),
    "under-min-isr": (
        Faulty(
            looks(lambda seen: with_topic(seen, topic("orders", partition(0, (1, 2, 3), isr=(1,))))),
            "partitions",
            "1 partition: orders-0",
            "kafka-server-start",
            also=("replica-not-catching-up",),
        ),
    ),
    "min-isr-above-replicas": (
        _changed(
            lambda seen: with_topic(seen, seen.topics["orders"], min_insync_replicas="4"),
            "topic orders",
            "min.insync.replicas is 4, and partitions have 3 replicas",
            "kaspar topic alter orders --set min.insync.replicas=3 -b kafka:9092",
        ),
    ),
    "under-replicated": (
        Faulty(
            Looks((_out_of_sync(look()),)), "broker 3", "1 partition without the replica of broker 3", "cluster health"
        ),
    ),
    "replica-not-catching-up": (
        _changed(
            _stuck, "broker 3", "in 60 s gained nothing on the leaders of 1 partition: orders-0", "broker describe 3"
        ),
    ),
    "offline-log-dir": (
        _changed(
            lambda seen: with_log_dir(seen, LogDirSeen("/disk2", True, None, None, {})),
            "broker 2",
            "/disk2 failed",
            "kafka-server-start",
        ),
    ),
    "disk-almost-full": (
        _changed(
            lambda seen: with_log_dir(seen, LogDirSeen("/data", False, 1000 * GIB, 10 * GIB, {ORDERS: 1000})),
            "broker 2",
            "10.0 GiB of 1000.0 GiB left",
            f"kaspar topic alter orders --set retention.ms={7 * DAY_MS // 2}",
        ),
    ),
    "disk-full-soon": (
        _changed(
            lambda seen: with_log_dir(
                seen, LogDirSeen("/data", False, 1000 * GIB, 100 * GIB, {ORDERS: seconds(seen) * GIB // 60})
            ),
            "broker 2",
            "full in about 100 minutes: logs grew by 1.0 GiB in the 60 s of this observation",
            "kaspar topic alter orders --set retention.ms",
        ),
    ),
    "log-dirs-in-tmp": (
        _changed(
            lambda seen: with_log_dir(seen, replace(seen.log_dirs[2][0], path="/tmp/kafka-logs")),
            "broker 2",
            "/tmp/kafka-logs",
            None,
        ),
    ),
    "group-behind": (
        _changed(
            _group("Stable", 4), "group late", "grew from 405 to 765 records in 60 s", "kaspar group describe late"
        ),
        _changed(
            _group("Stable", 4, members=3),
            "group late",
            "on 1 partition: orders-0",
            "kaspar topic add-partitions orders --to 6",
        ),
    ),
    "group-stalled": (
        _changed(_group("Stable", 0), "group late", "No offset was committed in 60 s", "kaspar group describe late"),
    ),
    "group-without-members": (
        _changed(
            _group("Empty", 0), "group late", "1,005 records behind, on 1 partition", "kaspar group describe late"
        ),
    ),
    "group-rebalancing": (
        _changed(
            lambda seen: with_group(seen, GroupSeen("PreparingRebalance", {})),
            "group late",
            "PreparingRebalance in each of 7 observations",
            "kaspar group describe late",
        ),
    ),
    "idle-members": (
        _changed(
            _group("Stable", 20, members=5, idle=2),
            "group late",
            "2 of 5 members have no partition",
            "kaspar topic add-partitions orders --to 5",
        ),
    ),
    "group-lost-records": (
        Faulty(
            looks(lambda seen: with_group(seen, GroupSeen("Empty", {ORDERS: 40}))),
            "group late",
            "60 offsets before the start of orders-0 were not read",
            "kaspar group seek late --to start --topic orders",
            also=("group-without-members",),
        ),
    ),
    "group-loses-records": (
        Faulty(
            looks(lambda seen: with_group(seen, GroupSeen("Empty", {ORDERS: 400}))),
            "group late",
            "orders-0 are older than 6 days, and retention.ms is 7 days",
            f"kaspar topic alter orders --set retention.ms={14 * DAY_MS}",
            also=("group-without-members",),
        ),
        Faulty(
            looks(_full_log),
            "group late",
            "close to retention.bytes (1.1 KiB)",
            "kaspar topic alter orders --set retention.bytes=2200",
            also=("group-without-members",),
        ),
    ),
    "hanging-transaction": (
        _changed(
            lambda seen: replace(seen, hanging=(HangingTransactionSeen(ORDERS, 7000, START_MS - HOUR_MS),)),
            "topic orders",
            "producer 7000 on orders-0, silent for 61 minutes",
            "kaspar txn hanging --topic orders --abort",
        ),
    ),
    "long-transaction": (
        _changed(
            _transaction,
            "transactional id payments-1",
            "Ongoing for 11 minutes, of 15 minutes at most, and holds back orders-0",
            "kaspar txn abort payments-1",
        ),
    ),
    "one-replica": (
        _changed(
            lambda seen: with_topic(seen, topic("lone", partition(0, (1,))), min_insync_replicas="1"),
            "topic lone",
            "1 topic of 6: lone",
            "kaspar doctor --plan replication -b kafka:9092 | kafka-reassign-partitions --bootstrap-server kafka:9092",
        ),
    ),
    "internal-topic-replicas": (
        _changed(
            lambda seen: with_topic(seen, topic("__consumer_offsets", partition(0, (1,))), min_insync_replicas="1"),
            "topic __consumer_offsets",
            "1 replica in a cluster of 3 brokers",
            "kaspar doctor --plan replication",
        ),
    ),
    "min-isr-one": (
        _changed(
            lambda seen: with_topic(seen, seen.topics["orders"], min_insync_replicas="1"),
            "topic orders",
            "1 topic with three replicas or more: orders",
            "kaspar topic alter orders --set min.insync.replicas=2",
        ),
    ),
    "unclean-leader-election": (
        _changed(
            lambda seen: with_settings(seen, unclean_leader_election_enable="true"),
            "all brokers",
            "do not override it",
            "kaspar config set broker unclean.leader.election.enable=false",
        ),
        _changed(
            lambda seen: with_topic(seen, seen.topics["orders"], unclean_leader_election_enable="true"),
            "topic orders",
            "1 topic: orders",
            "kaspar topic alter orders --unset unclean.leader.election.enable",
        ),
    ),
    "default-replication": (
        _changed(
            lambda seen: with_settings(seen, default_replication_factor="1"),
            "all brokers",
            "default.replication.factor=1, in a cluster of 3 brokers",
            "kaspar config list broker/1",
        ),
    ),
    "registry-topic-not-compacted": (
        _changed(
            lambda seen: with_topic(seen, seen.topics["_schemas"], cleanup_policy="delete"),
            "topic _schemas",
            "cleanup.policy is delete",
            "kaspar topic alter _schemas --set cleanup.policy=compact",
        ),
    ),
    "not-preferred-leaders": (
        _changed(
            lambda seen: with_topic(seen, topic("orders", *(partition(n, (1, 2, 3), leader=2) for n in range(3)))),
            "partitions",
            "3 of 13 partitions have another leader: orders-0",
            "kafka-leader-election --bootstrap-server kafka:9092 --election-type preferred --all-topic-partitions",
        ),
    ),
    "skewed-leaders": (
        _changed(
            lambda seen: _many(seen, (3, 1, 2)), "broker 3", "leads 44 partitions; the mean is 18", "--plan spread"
        ),
        Faulty(
            looks(
                lambda seen: with_topic(
                    seen,
                    topic(
                        "many", *(partition(n, ((1, 2, 3), (2, 3, 1), (3, 1, 2))[n % 3], leader=3) for n in range(40))
                    ),
                )
            ),
            "broker 3",
            "leads 44 partitions",
            "kafka-leader-election",
            also=("not-preferred-leaders",),
        ),
    ),
    "skewed-replicas": (
        Faulty(
            looks(
                lambda seen: with_topic(
                    _many(seen, (3,), 60),
                    topic("many", *(partition(n, (3,)) for n in range(60))),
                    min_insync_replicas="1",
                )
            ),
            "broker 3",
            "has 73 replicas; the mean is 33",
            "kaspar doctor --plan spread",
            also=("one-replica", "skewed-leaders"),
        ),
    ),
    "skewed-disks": (
        _changed(
            lambda seen: with_log_dir(seen, LogDirSeen("/data", False, 1000 * GIB, 500 * GIB, {ORDERS: 300 * GIB})),
            "broker 2",
            "stores 300.0 GiB; the mean is 100.0 GiB",
            "kaspar broker log-dirs",
        ),
    ),
    "many-partitions": (
        Faulty(
            looks(lambda seen: with_topic(seen, spread_topic("many", 4500)), count=1),
            "broker 1",
            "has 4,513 replicas",
            "kaspar topic list",
        ),
    ),
    "mixed-versions": (_changed(_older_broker, "cluster", "brokers 1, 3; broker 2", "kafka-broker-api-versions"),),
    "feature-levels-behind": (
        _changed(
            _newer_features,
            "cluster",
            "group.version is at 1 of 2",
            "kafka-features --bootstrap-server kafka:9092 upgrade --feature group.version=2",
        ),
    ),
    "clocks-apart": (
        _changed(_clock(9000), "broker 2", "9.1 s ahead of the other brokers, by its metrics page", None),
        _changed(
            lambda seen: replace(seen, clocks={1: ClockSeen(-9000, 510, "its metrics page")}),
            "broker 1",
            "9.0 s behind the clock of this machine",
            None,
        ),
        _changed(
            lambda seen: replace(seen, clocks=dict.fromkeys((1, 2, 3), ClockSeen(9000, 510, "its metrics page"))),
            "this machine",
            "9.0 s behind those of the brokers",
            None,
        ),
    ),
    "timestamps-ahead": (
        _changed(
            lambda seen: replace(seen, newest_timestamps={ORDERS: seen.at_ms + 3 * HOUR_MS}),
            "topic orders",
            "orders-0 has a timestamp 3 hours ahead",
            "kaspar topic alter orders --set message.timestamp.type=LogAppendTime",
        ),
    ),
    "misspelt-topic": (
        _changed(_misspelt, "topic paymnets", "there is a topic payments", "kaspar topic delete paymnets"),
    ),
    "small-segments": (
        _changed(
            lambda seen: with_log_dir(
                with_topic(seen, seen.topics["orders"], segment_bytes="1048576"),
                LogDirSeen("/data", False, 1000 * GIB, 500 * GIB, {ORDERS: GIB}),
            ),
            "topic orders",
            "A partition gets up to 1,024 segments: orders (segment.bytes=1048576)",
            "kaspar topic alter orders --unset segment.bytes",
        ),
        _changed(
            lambda seen: with_topic(seen, seen.topics["orders"], segment_ms="1000"),
            "topic orders",
            "up to 604,800 segments: orders (segment.ms=1000)",
            "kaspar topic alter orders --unset segment.ms",
        ),
    ),
    "plaintext-listener": (
        Faulty(
            looks(lambda seen: with_settings(seen, listeners="INSIDE://:9093")),
            "broker 1",
            "Without TLS: INSIDE://0.0.0.0:9093",
            "kaspar certs",
        ),
    ),
    "no-authorizer": (
        Faulty(
            looks(lambda seen: with_settings(seen, authorizer_class_name="")),
            "broker 1",
            "no authorizer.class.name",
            "kaspar up --secure",
        ),
        Faulty(
            looks(lambda seen: with_settings(seen, allow_everyone_if_no_acl_found="true")),
            "broker 1",
            "allow.everyone.if.no.acl.found is true",
            "kaspar acl list",
        ),
    ),
    "certificate-expired": (_changed(_certificate(-3), "broker 1", "SSL://k:9092 expired 3 days ago", "kaspar certs"),),
    "certificate-expires": (_changed(_certificate(12), "broker 1", "SSL://k:9092 expires in 12 days", "kaspar certs"),),
    "broker-busy": (
        _changed(
            lambda seen: with_page(seen, page(HANDLERS_IDLE=0.1)),
            "broker 2",
            "idle for at most 10%",
            "kaspar quota list",
        ),
    ),
    "event-loop-stalls": (
        _changed(lambda seen: with_page(seen, page(LONGEST_STALL=3.5)), "broker 2", "For 3.5 s", "broker describe 2"),
    ),
    "slow-requests": (
        _changed(
            lambda seen: with_page(
                seen, with_family(page(), load.TOTAL_TIME, {"request": "Produce", "quantile": "0.99"}, 2500.0)
            ),
            "broker 2",
            "99th percentile of Produce is 2,500 ms",
            "broker describe 2",
        ),
    ),
    "few-file-descriptors": (
        _changed(
            lambda seen: with_page(seen, page(OPEN_FILES=1000.0, MAX_FILES=1024.0)),
            "broker 2",
            "1,000 of 1,024 are open",
            "broker describe 2",
        ),
    ),
    "throttled-client": (
        _changed(
            lambda seen: replace(
                with_page(
                    seen, with_family(page(), load.THROTTLE_TIME, {"resource": "Fetch", "user": "b%C3%B6b"}, 5.0)
                ),
                quotas={QuotaEntity("böb"): {"consumer_byte_rate": 1048576.0}},
            ),
            "user böb",
            "consumer_byte_rate was used up",
            "kaspar quota set --user 'böb' consumer_byte_rate=2097152 -b kafka:9092",
        ),
        _changed(
            lambda seen: with_page(
                seen,
                with_family(
                    page(),
                    load.THROTTLE_TIME,
                    {"resource": "Produce", "user": "alice", "clientId": "batch"},
                    120.0,
                ),
            ),
            "user alice client-id batch",
            "producer_byte_rate was used up in each of 7 observations",
            "kaspar quota list",
        ),
    ),
    "cleaner-dead": (
        _changed(lambda seen: with_page(seen, page(DEAD_CLEANERS=1.0)), "broker 2", "1 of its cleaner's", "start"),
    ),
    "uncleanable-partitions": (
        _changed(
            lambda seen: with_page(seen, with_family(page(), load.UNCLEANABLE, {"logDirectory": "/data"}, 2.0)),
            "broker 2",
            "2 in /data",
            "kafka-server-start",
        ),
    ),
    "compaction-late": (
        _changed(
            lambda seen: with_page(seen, page(COMPACTION_DELAY=90.0)),
            "broker 2",
            "90 s overdue",
            "kaspar config set broker log.cleaner.threads=2",
        ),
    ),
}
