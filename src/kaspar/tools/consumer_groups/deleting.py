"""--delete and --delete-offsets."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import delete_group_offsets
from kaspar.client.admin.groups import delete_groups
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import describe_topics
from kaspar.tools.consumer_groups.listing import group_ids_of
from kaspar.tools.consumer_groups.scope import parse_partitions
from kaspar.tools.consumer_groups.tables import deleted_offset_table
from kaspar.tools.kafka_errors import exception_text, message_of

_UNKNOWN_PARTITION: Final = -1
_OF_GROUP: Final = frozenset(
    {
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    }
)
_OF_PARTITION: Final = frozenset(
    {
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def delete(admin: Admin, options: argparse.Namespace) -> None:
    results = delete_groups(admin, group_ids_of(admin, options))
    failed = {group_id: refused for group_id, refused in results.items() if refused is not None}
    deleted = _quoted(group_id for group_id, refused in results.items() if refused is None)
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group_id, refused in failed.items():
        print(f"* Group '{group_id}' could not be deleted due to: {exception_text(refused)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def delete_offsets(admin: Admin, options: argparse.Namespace) -> None:
    group_id = options.group[0]
    results = _without_partitions(admin, options.topic)
    partitions = [where for where in results if where.partition != _UNKNOWN_PARTITION]
    try:
        results |= delete_group_offsets(admin, group_id, partitions)
        failure = next((results[where] for where in partitions if results[where] is not None), None)
    except Refused as refused:
        results |= dict.fromkeys(partitions, refused)
        failure = refused
    print(_summary(group_id, failure))
    for line in deleted_offset_table(results):
        print(line)


def _without_partitions(admin: Admin, topics: Sequence[str]) -> dict[TopicPartition, Refused | None]:
    """The partitions whose offsets to delete. A topic that cannot be described has one entry, with the error."""
    partitions, whole_topics = parse_partitions(topics)
    found: dict[TopicPartition, Refused | None] = dict.fromkeys(partitions)
    try:
        described = describe_topics(admin, whole_topics)
    except Refused as refused:
        return found | {TopicPartition(topic, _UNKNOWN_PARTITION): refused for topic in whole_topics}
    for name, topic in described.items():
        if isinstance(topic, Refused):
            found[TopicPartition(name, _UNKNOWN_PARTITION)] = topic
        else:
            found |= {TopicPartition(name, each.partition): None for each in topic.partitions}
    return found


def _summary(group_id: str, failure: Refused | None) -> str:
    if failure is None:
        return f"Request succeeded for deleting offsets from group {group_id}."
    if failure.code in _OF_GROUP:
        return f"\nError: {message_of(failure)}"
    if failure.code in _OF_PARTITION:
        return "\nError: Encountered some partition-level error, see the follow-up details."
    return f"\nError: Encountered some unknown error: {failure.code.name}"
