"""--topic orders --topic payments:0,1: the partitions that an action applies to."""

from collections.abc import Sequence

from kaspar.base.ids import TopicPartition
from kaspar.tools.consumer_groups.options import WrongOption
from kaspar.tools.java_numbers import parse_int


def parse_partitions(topics: Sequence[str]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that are listed, and the topics that are given without partitions."""
    partitions = [where for text in topics if ":" in text for where in _of_topic(text)]
    return list(dict.fromkeys(partitions)), [text for text in topics if ":" not in text]


def _of_topic(text: str) -> list[TopicPartition]:
    topic, *rest = text.split(":")
    if len(rest) != 1 or not rest[0]:
        raise WrongOption(f"Invalid topic arg '{text}', expected topic name and partitions")
    return [TopicPartition(topic, _number(each, text)) for each in rest[0].split(",")]


def _number(partition: str, text: str) -> int:
    try:
        return parse_int(partition)
    except ValueError:
        raise WrongOption(f"Invalid partition '{partition}' specified in topic arg '{text}''") from None
