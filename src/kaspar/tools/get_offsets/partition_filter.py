"""Which partitions kafka-get-offsets is asked for: --topic with --partitions, or --topic-partitions."""

import re
from collections.abc import Callable
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.include_list import topic_pattern

PartitionFilter = Callable[[TopicPartition], bool]

_RULE: Final = re.compile(r"([^:,]*)(?::(?:(\d*)|(\d*)-(\d*)))?")


def of_topic_and_partitions(topic: str | None, partitions: str | None) -> PartitionFilter:
    """`topic` is an include list, and `partitions` are numbers, 0,1,2; None stands for all."""
    pattern = topic_pattern(".*" if topic is None else topic)
    numbers = _numbers(partitions) if partitions else None
    return lambda where: bool(pattern.fullmatch(where.topic)) and (numbers is None or where.partition in numbers)


def _numbers(text: str) -> set[int]:
    try:
        return {int(each) for each in text.split(",")}
    except ValueError:
        raise CommandFailed(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def of_rules(text: str) -> PartitionFilter:
    """Rules with commas between, one of which must match: topic, topic:1, topic:1-3 (without the 3), topic:1- and
    topic:-3. The topic is a regular expression; without one, the rule is for all topics."""
    rules = [_rule(each) for each in text.split(",")]
    return lambda where: any(rule(where) for rule in rules)


def _rule(text: str) -> PartitionFilter:
    found = _RULE.fullmatch(text)
    if found is None:
        raise CommandFailed(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}")
    topic, exact, lower, upper = found.groups()
    pattern = topic_pattern(topic or ".*")
    first, end = (int(exact), int(exact) + 1) if exact else (int(lower or 0), int(upper) if upper else None)
    return lambda where: (
        bool(pattern.fullmatch(where.topic)) and first <= where.partition and (end is None or where.partition < end)
    )
