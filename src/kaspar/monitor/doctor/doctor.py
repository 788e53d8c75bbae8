"""The doctor: looks at a cluster, several times, and says what is wrong.

    doctor = Doctor(Access("localhost:9092"))
    observations = [doctor.look(admin)]      # and again, some seconds later
    findings(observations)

What changes rarely and costs most (settings of all topics, transactions of all partitions, certificates) is looked at
every few minutes, and carried over from one look to the next in between.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription
from kaspar.monitor.doctor.access import Access
from kaspar.monitor.doctor.checks import ALL_CHECKS
from kaspar.monitor.doctor.checks.retention import danger_ms
from kaspar.monitor.doctor.checks.transactions import LONG_MS
from kaspar.monitor.doctor.findings import Finding, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import BrokerSeen, GroupSeen, LogEnds, Observation, Settings
from kaspar.monitor.doctor.observing.certificates import look_at_certificates
from kaspar.monitor.doctor.observing.cluster import (
    look_at_cluster,
    look_at_features,
    look_at_log_dirs,
    look_at_reassignments,
    look_at_topics,
)
from kaspar.monitor.doctor.observing.groups import look_at_ends, look_at_groups, with_members
from kaspar.monitor.doctor.observing.pages import PageAddress, look_at_pages
from kaspar.monitor.doctor.observing.parts import Parts, bounded
from kaspar.monitor.doctor.observing.settings import look_at_brokers_settings, look_at_topics_settings
from kaspar.monitor.doctor.observing.transactions import look_at_open_transactions, look_for_hanging

TIMEOUT_S: Final = 5.0
"""For one call, whatever the timeout of the session: a broker that hangs is a finding, not a reason to wait."""
SELDOM_MS: Final = 300_000
_MAX_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""Kafka's default of transaction.max.timeout.ms: a transaction that is silent for longer has not just been started."""
_WORST_FIRST: Final = {Severity.PROBLEM: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def findings(observations: Sequence[Observation]) -> tuple[Finding, ...]:
    """What all checks find in one or several looks at a cluster, the worst first."""
    if not observations:
        return ()
    looks = Looks(tuple(observations))
    found = [finding for check in ALL_CHECKS for finding in check.findings(looks)]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.severity]))


class Doctor:
    """Looks at one cluster. Not thread-safe."""

    def __init__(
        self,
        access: Access,
        pages: Mapping[int, PageAddress] | None = None,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` are the metrics pages of brokers, as far as they are known."""
        self._access = access
        self._pages = pages or {}
        self._now_ms = now_ms
        self._seldom: Observation | None = None

    findings = staticmethod(findings)

    def look(self, admin: Admin) -> Observation:
        """Raises KasparError or OSError if the cluster itself cannot be described."""
        cluster = look_at_cluster(admin)
        live = [node.node_id for node in cluster.nodes if not node.is_fenced]
        parts = Parts()
        with bounded(admin, TIMEOUT_S):
            topics = parts.read("topics", lambda: look_at_topics(admin)) or {}
            log_dirs = look_at_log_dirs(admin, live, parts)
            seldom = self._seldom_seen(admin, topics, live, parts)
            groups, ends = self._groups(admin, replace(seldom, topics=topics), live, parts)
            reassigning = parts.read("reassignments", lambda: look_at_reassignments(admin)) or frozenset()
        pages, clocks = look_at_pages(self._pages, parts, self._now_ms)
        return replace(
            seldom,
            at_ms=self._now_ms(),
            controller_id=cluster.controller_id,
            brokers={
                each.node_id: BrokerSeen(
                    each.node_id, each.host, each.port, each.is_fenced, each.node_id not in parts.silent
                )
                for each in cluster.nodes
            },
            topics=topics,
            reassigning=reassigning,
            log_dirs=log_dirs,
            groups=groups,
            ends=ends,
            pages=pages,
            clocks=clocks,
            missing=(*seldom.missing, *parts.missing),
        )

    def _groups(
        self, admin: Admin, known: Observation, live: Sequence[int], parts: Parts
    ) -> tuple[Mapping[str, GroupSeen], Mapping[TopicPartition, LogEnds]]:
        groups = parts.read("groups", lambda: look_at_groups(admin, live, parts)) or {}
        groups = parts.read("members of groups", lambda: with_members(admin, groups)) or groups
        now_ms = self._now_ms()
        danger_times = {topic: now_ms - age for topic in known.topics if (age := danger_ms(known, topic)) is not None}
        ends = parts.read(
            "offsets of what groups read", lambda: look_at_ends(admin, groups, known.topics.keys(), danger_times)
        )
        return groups, ends or {}

    def _seldom_seen(
        self, admin: Admin, topics: Mapping[str, TopicDescription], live: Sequence[int], parts: Parts
    ) -> Observation:
        """What is looked at seldom, as of the last time."""
        now_ms = self._now_ms()
        if self._seldom is None or now_ms - self._seldom.at_ms >= SELDOM_MS:
            own = Parts()
            own.silent = parts.silent
            settings = look_at_brokers_settings(admin, live, own)
            longest_ms = _longest_transaction_ms(settings)
            partitions = [
                TopicPartition(topic.name, each.partition)
                for topic in topics.values()
                for each in topic.partitions
                if each.leader >= 0 and each.leader not in own.silent
            ]
            self._seldom = Observation(
                at_ms=now_ms,
                access=self._access,
                broker_settings=settings,
                topic_settings=own.read(
                    "settings of topics", lambda: look_at_topics_settings(admin, sorted(topics), own)
                )
                or {},
                features=look_at_features(admin, live, own),
                certificates=look_at_certificates(settings, own),
                transactions=own.read("open transactions", lambda: look_at_open_transactions(admin, LONG_MS)) or (),
                hanging=own.read(
                    "hanging transactions", lambda: look_for_hanging(admin, partitions, now_ms - longest_ms)
                )
                or (),
                missing=tuple(own.missing),
            )
        return self._seldom


def _longest_transaction_ms(settings: Mapping[int, Settings]) -> int:
    values = [each.get("transaction.max.timeout.ms", "") for each in settings.values()]
    return max((int(value) for value in values if value.isdecimal()), default=_MAX_TRANSACTION_TIMEOUT_MS)
