"""The doctor observes a cluster several times and reports what is wrong.

    doctor = Doctor(Access("localhost:9092"))
    observations = [doctor.look(admin)]      # and again, some seconds later
    findings(observations)

The parts that rarely change and are expensive to read (settings of all topics, transactions of all partitions,
certificates) are read only every few minutes, and copied to the observations in between.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_with_fenced
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription
from kaspar.monitor.doctor.access import Access
from kaspar.monitor.doctor.checks import ALL_CHECKS
from kaspar.monitor.doctor.checks.retention import danger_ms
from kaspar.monitor.doctor.finding import Finding, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import BrokerSeen, GroupSeen, LogDirSeen, LogEnds, Observation
from kaspar.monitor.doctor.observing.cluster import (
    look_at_log_dirs,
    look_at_reassignments,
    look_at_topics,
)
from kaspar.monitor.doctor.observing.groups import look_at_ends, look_at_groups, with_members
from kaspar.monitor.doctor.observing.pages import PageAddress, look_at_pages
from kaspar.monitor.doctor.observing.parts import Parts, bounded
from kaspar.monitor.doctor.observing.slow_changing import look_at_slow_changing

TIMEOUT_S: Final = 5.0
"""The timeout of one call, even if that of the session is longer: a broker that hangs is a finding."""
SLOW_CHANGING_MS: Final = 300_000
_WORST_FIRST: Final = {Severity.PROBLEM: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def findings(observations: Sequence[Observation]) -> tuple[Finding, ...]:
    """The findings of all checks for one or more observations of a cluster, worst first."""
    if not observations:
        return ()
    looks = Looks(tuple(observations))
    found = [finding for check in ALL_CHECKS for finding in check.findings(looks)]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.severity]))


class Doctor:
    """Observes one cluster. Not thread-safe."""

    def __init__(
        self,
        access: Access,
        pages: Mapping[int, PageAddress] | None = None,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`pages` are the addresses of those brokers' metrics pages that are known."""
        self._access = access
        self._pages = pages or {}
        self._now_ms = now_ms
        self._slow_changing: Observation | None = None
        self._topics: Mapping[str, TopicDescription] = {}

    def look(self, admin: Admin, *, everything: bool = False) -> Observation:
        """Make an observation. `everything` rereads the slow-changing parts too. Raises KasparError or OSError if the
        cluster itself cannot be described."""
        if everything:
            self._slow_changing = None
        cluster = describe_with_fenced(admin)
        live = [node.node_id for node in cluster.nodes if not node.is_fenced]
        parts = Parts()
        with bounded(admin, TIMEOUT_S):
            topics = _sharing(parts.read("topics", lambda: look_at_topics(admin)) or {}, self._topics)
            self._topics = topics
            log_dirs = look_at_log_dirs(admin, live, parts)
            slow_changing = self._slow_changing_parts(admin, topics, log_dirs, live, parts)
            groups, ends = self._groups(admin, replace(slow_changing, topics=topics), live, parts)
            reassigning = parts.read("reassignments", lambda: look_at_reassignments(admin)) or frozenset()
        pages, clocks = look_at_pages(self._pages, parts, self._now_ms)
        return replace(
            slow_changing,
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
            missing=(*slow_changing.missing, *parts.missing),
        )

    def _groups(
        self, admin: Admin, known: Observation, live: Sequence[int], parts: Parts
    ) -> tuple[Mapping[str, GroupSeen], Mapping[TopicPartition, LogEnds]]:
        groups = parts.read("groups", lambda: look_at_groups(admin, live, parts)) or {}
        groups = parts.read("members of groups", lambda: with_members(admin, groups)) or groups
        now_ms = self._now_ms()
        danger_times = {topic: now_ms - age for topic in known.topics if (age := danger_ms(known, topic)) is not None}
        ends = parts.read(
            "log ends of consumed partitions", lambda: look_at_ends(admin, groups, known.topics.keys(), danger_times)
        )
        return groups, ends or {}

    def _slow_changing_parts(
        self,
        admin: Admin,
        topics: Mapping[str, TopicDescription],
        log_dirs: Mapping[int, tuple[LogDirSeen, ...]],
        live: Sequence[int],
        parts: Parts,
    ) -> Observation:
        """The slow-changing parts, which are reread if they are too old."""
        now_ms = self._now_ms()
        if self._slow_changing is None or now_ms - self._slow_changing.at_ms >= SLOW_CHANGING_MS:
            self._slow_changing = look_at_slow_changing(
                admin, Observation(now_ms, self._access, topics=topics, log_dirs=log_dirs), live, parts.silent
            )
        return self._slow_changing


def _sharing(new: Mapping[str, TopicDescription], old: Mapping[str, TopicDescription]) -> dict[str, TopicDescription]:
    """Reuses the previous objects of topics that are equal, so that observations of an idle cluster share memory."""
    return {name: known if (known := old.get(name)) == topic else topic for name, topic in new.items()}
