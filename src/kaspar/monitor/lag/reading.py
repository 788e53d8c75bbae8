"""What one round reads from the brokers, with as few requests as Kafka allows: one ListGroups per broker, one
OffsetFetch per coordinator for all of its groups, and two ListOffsets per leader, for high watermarks and for the last
stable offsets of partitions that groups have not read to the end.

Failures of single requests are reported, and the rest is still read.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import broker_ids
from kaspar.client.admin.group_offsets import GroupOffsets, list_group_offsets
from kaspar.client.admin.groups import GroupListing, GroupType, describe_consumer_groups
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import GONE, READ_COMMITTED, READ_UNCOMMITTED, ListedOffset
from kaspar.config.kinds import MAX_LONG
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.views import Owner
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one group."""

    count: int
    owners: Mapping[TopicPartition, Owner]


NO_MEMBERS = Members(0, {})


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Selects the groups to evaluate, with regular expressions that match anywhere in the name."""

    allowed: str = ""
    denied: str = ""

    def accepts(self, group: str) -> bool:
        if self.allowed and not re.search(self.allowed, group):
            return False
        return not (self.denied and re.search(self.denied, group))


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """The offsets that one round has read."""

    at_ms: int
    groups: Mapping[str, GroupListing]
    lists_all_groups: bool
    """Whether every broker has listed its groups, so that groups missing from the lists do not exist."""
    commits: Mapping[str, GroupOffsets]
    """The commits of groups whose coordinator has responded."""
    ends: Mapping[TopicPartition, Ends]
    gone: frozenset[TopicPartition] = frozenset()
    """Partitions that no longer exist."""
    problems: Mapping[str, str] = field(default_factory=dict)


def read_offsets(
    admin: Admin, accepts: GroupFilter, *, also: Collection[TopicPartition] = (), now_ms: int
) -> OffsetsRead:
    """`also` are partitions whose ends are read even if they have no commits. Raises Refused, and OSError if no broker
    responds."""
    problems: dict[str, str] = {}
    listed, lists_all = _list_groups(admin, problems)
    groups = {name: each for name, each in listed.items() if accepts.accepts(name) and _has_offsets(each)}
    commits = _commits(admin, groups, problems)
    ends, gone = _ends(admin, _last_read(commits), also, problems)
    return OffsetsRead(now_ms, groups, lists_all, commits, ends, gone, problems)


def _has_offsets(group: GroupListing) -> bool:
    return group.type is not GroupType.SHARE


def _list_groups(admin: Admin, problems: dict[str, str]) -> tuple[dict[str, GroupListing], bool]:
    """Sends one request to each broker; brokers that do not respond are retried in the next round."""
    found: dict[str, GroupListing] = {}
    lists_all = True
    for broker_id in broker_ids(admin, "findAllBrokers"):
        try:
            response = admin.client.request_broker(broker_id, ListGroupsRequest(), ListGroupsResponse)
            refused = refusal(response.error_code)
        except Refused as problem:
            refused = problem
        except OSError as problem:
            refused = Refused(ErrorCode.NETWORK_EXCEPTION, str(problem))
        if refused is not None:
            problems[f"groups of broker {broker_id}"] = refused.message
            lists_all = False
            continue
        for each in response.groups:
            found[each.group_id] = GroupListing(
                each.group_id, each.protocol_type, each.group_state, _group_type(each.group_type)
            )
    return found, lists_all


def _group_type(name: str) -> GroupType:
    """Brokers before Kafka 3.8 do not return the type."""
    return next((each for each in GroupType if each.lower() == name.lower()), GroupType.UNKNOWN)


def _commits(admin: Admin, groups: Collection[str], problems: dict[str, str]) -> dict[str, GroupOffsets]:
    commits: dict[str, GroupOffsets] = {}
    for group, offsets in list_group_offsets(admin, groups).items():
        if isinstance(offsets, Refused):
            problems[f"group {group}"] = offsets.message
        else:
            commits[group] = offsets
    return commits


def _last_read(commits: Mapping[str, GroupOffsets]) -> dict[TopicPartition, int]:
    """The smallest committed offset of each partition."""
    smallest: dict[TopicPartition, int] = {}
    for offsets in commits.values():
        for where, commit in offsets.items():
            if commit.offset < smallest.get(where, MAX_LONG):
                smallest[where] = commit.offset
    return smallest


def _ends(
    admin: Admin, committed: Mapping[TopicPartition, int], also: Collection[TopicPartition], problems: dict[str, str]
) -> tuple[dict[TopicPartition, Ends], frozenset[TopicPartition]]:
    """Last stable offsets are read only where a group has records to read, since elsewhere they make no difference."""
    high = _latest(admin, committed.keys() | set(also), READ_UNCOMMITTED)
    stable = _latest(
        admin,
        [
            where
            for where, offset in committed.items()
            if isinstance(listed := high[where], ListedOffset) and offset < listed.offset
        ],
        READ_COMMITTED,
    )
    ends: dict[TopicPartition, Ends] = {}
    gone: set[TopicPartition] = set()
    for where, listed in high.items():
        last_stable = stable.get(where, listed)
        if isinstance(listed, Refused) or isinstance(last_stable, Refused):
            problem = listed if isinstance(listed, Refused) else last_stable
            assert isinstance(problem, Refused)
            if problem.code in GONE:
                gone.add(where)
            else:
                problems[f"partition {where}"] = problem.message
            continue
        ends[where] = Ends(listed.offset, min(last_stable.offset, listed.offset))
    return ends, frozenset(gone)


def _latest(
    admin: Admin, partitions: Iterable[TopicPartition], isolation_level: int
) -> dict[TopicPartition, ListedOffset | Refused]:
    wanted: dict[TopicPartition, int] = dict.fromkeys(partitions, OffsetSpec.LATEST)
    return list_offsets(admin, wanted, isolation_level=isolation_level) if wanted else {}


def read_members(admin: Admin, groups: Collection[str]) -> dict[str, Members]:
    """The members and assignments of those groups that could be described."""
    members: dict[str, Members] = {}
    for group, described in describe_consumer_groups(admin, groups).items():
        if not isinstance(described, Refused):
            owners = {
                where: Owner(member.member_id, member.client_id, member.host)
                for member in described.members
                for where in member.assignment
            }
            members[group] = Members(len(described.members), owners)
    return members
