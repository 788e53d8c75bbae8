"""Offsets of partitions as JSON, in the format of Spark's own connector.

{"clicks": {"0": 23, "1": -1}, "orders": {"0": -2}}: in options -2 means earliest and -1 latest, and a topic may have
that word instead of its partitions. In a checkpoint all offsets are real: each is the last offset that was read plus
one. Partitions are sorted, so that equal offsets are equal texts: Spark compares the texts to see whether there is new
data.
"""

import json
from collections.abc import Mapping

from kaspar.base.ids import TopicPartition
from kaspar.spark.kafka_settings import InvalidOption

LATEST = -1
EARLIEST = -2

SPECIAL_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}

PartitionOffsets = Mapping[TopicPartition, int]


def to_json(offsets: PartitionOffsets) -> dict[str, dict[str, int]]:
    by_topic: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        by_topic.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return by_topic


def from_json(by_topic: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in by_topic.items()
        for partition, offset in partitions.items()
    }


def parse_timestamps(option: str, text: str) -> dict[TopicPartition, int]:
    try:
        return _of_partitions(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        raise InvalidOption(
            f'Option \'{option}\' must be like {{"topicA":{{"0":1000,"1":1000}},"topicB":{{"0":2000}}}}, '
            f"and {text!r} is not."
        ) from None


def parse_offsets(option: str, text: str) -> tuple[dict[TopicPartition, int], dict[str, int]]:
    """The offsets of partitions, and EARLIEST or LATEST for topics that are named as a whole."""
    try:
        by_topic = json.loads(text)
        topics = {topic: SPECIAL_OFFSETS[word.lower()] for topic, word in by_topic.items() if isinstance(word, str)}
        return _of_partitions({topic: given for topic, given in by_topic.items() if topic not in topics}), topics
    except (ValueError, TypeError, AttributeError, KeyError):
        raise InvalidOption(
            f"Option '{option}' must be earliest, latest, or like "
            f'{{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}},"topicC":"earliest"}}, not {text!r}.'
        ) from None


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """The partitions in the value of `assign`."""
    try:
        by_topic: dict[str, list[int]] = json.loads(text)
        return tuple(
            sorted({TopicPartition(topic, _whole(number)) for topic, numbers in by_topic.items() for number in numbers})
        )
    except (ValueError, TypeError, AttributeError):
        raise InvalidOption(
            f'Option \'{option}\' must be like {{"topicA":[0,1],"topicB":[2,4]}}, not {text!r}.'
        ) from None


def _of_partitions(by_topic: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {where: _whole(number) for where, number in from_json(by_topic).items()}


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(number)
    return number
