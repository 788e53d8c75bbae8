"""Looks up the topics and partitions that a command line names."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.cli.failures import NotFound
from kaspar.cli.topic_names import is_pattern, matching, unknown_topic

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.topics import TopicDescription


def existing_topics(admin: "Admin", names: Iterable[str]) -> "list[TopicDescription]":
    """The topics with these names, in the given order. Raises NotFound for the first that does not exist."""
    from kaspar.client.admin.topics import describe_topics

    wanted = list(dict.fromkeys(names))
    found = describe_topics(admin, wanted)
    topics = []
    for name in wanted:
        topic = found[name]
        if isinstance(topic, Refused):
            raise _missing(admin, name, topic)
        topics.append(topic)
    return topics


def matching_topics(admin: "Admin", words: Sequence[str]) -> "list[TopicDescription]":
    """The topics that match names and patterns. Raises NotFound."""
    from kaspar.client.admin.topics import list_topics

    return existing_topics(admin, matching(words, list_topics(admin)) if any(map(is_pattern, words)) else words)


def _missing(admin: "Admin", name: str, refused: Refused) -> KasparError:
    from kaspar.client.admin.topics import list_topics

    if refused.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
        return unknown_topic(name, list_topics(admin))
    return refused


def partitions_of(topic: "TopicDescription", only: Sequence[int] | None = None) -> "list[TopicPartition]":
    from kaspar.base.ids import TopicPartition

    there = [each.partition for each in topic.partitions]
    if missing := sorted(set(only or ()) - set(there)):
        raise NotFound(f"{topic.name} has partitions {there[0]} to {there[-1]}, not {', '.join(map(str, missing))}")
    return [TopicPartition(topic.name, number) for number in (there if only is None else only)]
