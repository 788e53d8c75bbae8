"""The parts that rarely change and are expensive to read: settings, versions, certificates, and the transactions of all
partitions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.quotas import describe_client_quotas
from kaspar.client.admin.session import Admin
from kaspar.monitor.doctor.checks.disks import replica_sizes
from kaspar.monitor.doctor.checks.transactions import LONG_MS
from kaspar.monitor.doctor.observation import TRANSACTIONS_TOPIC, Observation, Settings
from kaspar.monitor.doctor.observing.certificates import look_at_certificates
from kaspar.monitor.doctor.observing.cluster import look_at_features
from kaspar.monitor.doctor.observing.parts import Parts
from kaspar.monitor.doctor.observing.settings import look_at_brokers_settings, look_at_topics_settings
from kaspar.monitor.doctor.observing.timestamps import look_at_timestamps
from kaspar.monitor.doctor.observing.transactions import look_at_open_transactions, look_for_hanging

_MOST_TOPICS: Final = 100
"""The maximum number of topics whose timestamps are read; a broker reads a batch for each."""
_MAX_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""Kafka's default of transaction.max.timeout.ms. A transaction without activity for longer cannot be a new one."""


def look_at_slow_changing(admin: Admin, seen: Observation, live: Sequence[int], silent: set[int]) -> Observation:
    """The observation with these parts. `silent` are the brokers that have not responded; new ones are added to it."""
    parts = Parts(silent)
    topics = sorted(seen.topics)
    settings = look_at_brokers_settings(admin, live, parts)
    of_topics = parts.read("settings of topics", lambda: look_at_topics_settings(admin, topics, parts)) or {}
    found = replace(
        seen,
        broker_settings=settings,
        topic_settings=of_topics,
        newest_timestamps=parts.read("timestamps of records", lambda: look_at_timestamps(admin, _largest(seen))) or {},
        quotas=parts.read("quotas", lambda: describe_client_quotas(admin, ())) or {},
        features=look_at_features(admin, live, parts),
        certificates=look_at_certificates(settings, parts),
    )
    if TRANSACTIONS_TOPIC in seen.topics:
        found = _with_transactions(admin, found, parts)
    return replace(found, missing=tuple(parts.missing))


def _largest(seen: Observation) -> list[TopicPartition]:
    """The largest partition of each of the largest topics. One per topic is enough, because a producer with a wrong
    clock writes to all of its partitions."""
    sizes = sorted(replica_sizes(seen).items(), key=lambda each: -each[1])
    chosen: dict[str, TopicPartition] = {}
    for where, size in sizes:
        if size and where.topic in seen.topics and not where.topic.startswith("__"):
            chosen.setdefault(where.topic, where)
        if len(chosen) == _MOST_TOPICS:
            break
    return list(chosen.values())


def _with_transactions(admin: Admin, seen: Observation, parts: Parts) -> Observation:
    """Adds the transactions, in a cluster that has the transactions topic."""
    silent_since_ms = seen.at_ms - _longest_transaction_ms(seen.broker_settings)
    partitions: list[TopicPartition] = [
        where for where, each in seen.partitions() if each.leader >= 0 and each.leader not in parts.silent
    ]
    return replace(
        seen,
        transactions=parts.read("open transactions", lambda: look_at_open_transactions(admin, LONG_MS)) or (),
        hanging=parts.read("hanging transactions", lambda: look_for_hanging(admin, partitions, silent_since_ms)) or (),
    )


def _longest_transaction_ms(settings: Mapping[int, Settings]) -> int:
    values = [each.get("transaction.max.timeout.ms", "") for each in settings.values()]
    return max((int(value) for value in values if value.isdecimal()), default=_MAX_TRANSACTION_TIMEOUT_MS)
