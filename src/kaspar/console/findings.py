"""The doctor's findings, by their severity.

The doctor observes with the rights of the monitor. A caller who may not describe the cluster sees only findings about
topics and groups that the caller may see, and only if they name no other topic.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.acls.acl import AclOperation
from kaspar.callers.permissions import cluster_operations
from kaspar.client.admin.groups import list_groups
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.monitor.doctor.finding import Finding, Severity


@dataclass(frozen=True, slots=True)
class FindingsOfSeverity:
    severity: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class FindingsView:
    severities: tuple[FindingsOfSeverity, ...]
    """The most severe first, including those without findings."""
    total: int
    looked_at_ms: int | None
    """The time of the doctor's last observation; None if there was none yet."""
    hidden: int = 0
    """The number of findings that the caller may not see."""


@dataclass(frozen=True, slots=True)
class Visible:
    """The resources whose findings a caller may see."""

    cluster: bool
    topics: Collection[str] = ()
    groups: Collection[str] = ()


EVERYTHING: Final = Visible(cluster=True)


def visible_to(admin: Admin) -> Visible:
    """The resources that this caller may describe. Raises Refused."""
    if AclOperation.DESCRIBE in cluster_operations(admin):
        return EVERYTHING
    groups = frozenset(each.group_id for each in list_groups(admin))
    return Visible(cluster=False, topics=frozenset(list_topics(admin)), groups=groups)


def view_of(findings: Sequence[Finding], visible: Visible, *, looked_at_ms: int | None) -> FindingsView:
    shown = [each for each in findings if _is_visible(each, visible)]
    severities = tuple(
        FindingsOfSeverity(severity, tuple(each for each in shown if each.severity is severity))
        for severity in (Severity.PROBLEM, Severity.WARNING, Severity.NOTE)
    )
    return FindingsView(severities, len(shown), looked_at_ms, len(findings) - len(shown))


def _is_visible(finding: Finding, visible: Visible) -> bool:
    if visible.cluster:
        return True
    if not all(topic in visible.topics for topic in finding.topics):
        return False
    kind, _, name = finding.resource.partition(" ")
    if kind == "group":
        return name in visible.groups
    if kind == "partition":
        return name.rpartition("-")[0] in visible.topics
    return kind == "topic" and name in visible.topics
