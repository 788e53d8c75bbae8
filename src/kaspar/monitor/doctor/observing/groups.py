"""Groups: their states, committed offsets, and the log ends of their partitions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import list_group_offsets
from kaspar.client.admin.groups import CONSUMER_PROTOCOL, describe_consumer_groups
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, refuse
from kaspar.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.monitor.doctor.observation import GroupSeen, LogEnds, Missing
from kaspar.monitor.doctor.observing.parts import Parts, sentence_of
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def look_at_groups(admin: Admin, brokers: Iterable[int], parts: Parts) -> dict[str, GroupSeen]:
    """The consumer groups of both protocols, with their committed offsets."""
    states: dict[str, str] = {}
    for of_broker in parts.read_each("groups", brokers, lambda broker_id: _states(admin, broker_id)).values():
        states |= of_broker
    committed = list_group_offsets(admin, list(states))
    refused = [each for each in committed.values() if isinstance(each, Refused)]
    if refused:
        parts.missing.append(Missing(f"offsets of {len(refused)} groups", sentence_of(refused[0])))
    return {
        group_id: GroupSeen(states[group_id], {where: each.offset for where, each in offsets.items()})
        for group_id, offsets in committed.items()
        if not isinstance(offsets, Refused)
    }


def _states(admin: Admin, broker_id: int) -> dict[str, str]:
    response = admin.ask_broker("listGroups", broker_id, ListGroupsRequest(), ListGroupsResponse)
    refuse(response.error_code)
    return {
        each.group_id: each.group_state
        for each in response.groups
        if each.protocol_type in ("", CONSUMER_PROTOCOL) and each.group_type.lower() in ("", "classic", "consumer")
    }


def with_members(admin: Admin, groups: Mapping[str, GroupSeen]) -> dict[str, GroupSeen]:
    """The groups with the number of their members, which requires describing them."""
    described = describe_consumer_groups(admin, [group_id for group_id, each in groups.items() if each.has_members])
    found = dict(groups)
    for group_id, each in described.items():
        if not isinstance(each, Refused):
            idle = sum(not member.assignment for member in each.members)
            found[group_id] = replace(groups[group_id], members=len(each.members), idle_members=idle)
    return found


def look_at_ends(
    admin: Admin, groups: Mapping[str, GroupSeen], existing: Collection[str], danger_times: Mapping[str, int]
) -> dict[TopicPartition, LogEnds]:
    """The log ends of partitions with committed offsets. `danger_times` has the timestamp, by topic, before which
    records are in danger of being deleted."""
    partitions = {where for group in groups.values() for where in group.committed if where.topic in existing}
    if not partitions:
        return {}
    starts = _offsets(admin, dict.fromkeys(partitions, OffsetSpec.EARLIEST.value))
    ends = _offsets(admin, dict.fromkeys(partitions, OffsetSpec.LATEST.value))
    stable = _offsets(admin, dict.fromkeys(partitions, OffsetSpec.LATEST.value), READ_COMMITTED)
    lagging = {
        where
        for group in groups.values()
        for where, offset in group.committed.items()
        if where in ends and offset < ends[where] and where.topic in danger_times
    }
    old = _offsets(admin, {where: danger_times[where.topic] for where in lagging}) if lagging else {}
    found = {}
    for where in partitions & starts.keys() & ends.keys() & stable.keys():
        old_until = old.get(where)
        if old_until is not None and old_until < 0:  # all records are older
            old_until = ends[where]
        found[where] = LogEnds(starts[where], ends[where], stable[where], old_until)
    return found


def _offsets(
    admin: Admin, wanted: Mapping[TopicPartition, int], isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    found = list_offsets(admin, wanted, isolation_level=isolation_level)
    return {where: each.offset for where, each in found.items() if not isinstance(each, Refused)}
