"""Deletes groups or their committed offsets for a topic, and removes members."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.group_members import remove_group_members
from kaspar.client.admin.group_offsets import delete_group_offsets, list_group_offsets
from kaspar.client.admin.groups import GroupDescription, delete_groups
from kaspar.client.admin.session import Admin, accepted
from kaspar.console.groups.describing import find_group
from kaspar.console.problems import Conflict, NotThere, check_parts


def delete_group(admin: Admin, group_id: str) -> None:
    """Delete a group with its committed offsets. Raises Refused, NotThere and Conflict."""
    refused = delete_groups(admin, [group_id])[group_id]
    if refused is None:
        return
    if refused.code is ErrorCode.NON_EMPTY_GROUP:
        raise Conflict(f"The group {group_id} has members: stop them first, then delete it.")
    if refused.code is ErrorCode.GROUP_ID_NOT_FOUND:
        raise NotThere(f"The group {group_id} no longer exists.")
    raise refused


def delete_offsets(admin: Admin, group_id: str, topic: str) -> int:
    """Delete the offsets that a group has committed for a topic. Returns the number of partitions. Raises Refused,
    NotThere and Conflict."""
    committed = accepted(list_group_offsets(admin, [group_id])[group_id])
    partitions = [where for where in committed if where.topic == topic]
    if not partitions:
        raise NotThere(f"The group {group_id} has no committed offsets for {topic}.")
    results = delete_group_offsets(admin, group_id, partitions)
    if any(each is not None and each.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC for each in results.values()):
        raise Conflict(f"Members of the group are subscribed to {topic}: stop them first.")
    check_parts([each and Refused(each.code, f"{where}: {each.message}") for where, each in results.items()])
    return len(partitions)


def remove_member(admin: Admin, group_id: str, member_id: str) -> None:
    """Remove a member from its group. If it is still running, it joins again. Raises Refused, NotThere and Conflict."""
    group = find_group(admin, group_id)
    members = group.members if isinstance(group, GroupDescription) else ()
    member = next((each for each in members if each.member_id == member_id), None)
    if member is None:
        raise NotThere(f"The member is no longer in the group {group_id}.")
    for refused in remove_group_members(admin, group_id, [member]).values():
        if refused is not None and refused.code is ErrorCode.UNKNOWN_MEMBER_ID:
            raise Conflict(
                "The coordinator did not remove this member: it has just left, or it uses the consumer protocol "
                "(KIP-848), whose members cannot be removed."
            )
        if refused is not None:
            raise refused
