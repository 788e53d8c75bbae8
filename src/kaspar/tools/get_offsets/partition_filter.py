"""The partitions that kafka-get-offsets selects: --topic with --partitions, or --topic-partitions."""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.include_list import topic_pattern
from kaspar.tools.java_numbers import parse_int

_RULE: Final = re.compile(r"([^:,]*)(?::(?:(\d*)|(\d*)-(\d*)))?")
_ALL: Final = range(2**31)


@dataclass(frozen=True, slots=True)
class Rule:
    """Selects these partitions of the topics whose whole name matches."""

    topics: re.Pattern[str]
    partitions: Container[int] = _ALL


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Selects the partitions that match at least one rule."""

    rules: tuple[Rule, ...]

    def allows_topic(self, topic: str) -> bool:
        """Whether any partition of the topic may be selected."""
        return any(rule.topics.fullmatch(topic) for rule in self.rules)

    def allows(self, where: TopicPartition) -> bool:
        return any(rule.topics.fullmatch(where.topic) and where.partition in rule.partitions for rule in self.rules)


def of_topic_and_partitions(topic: str | None, partitions: str | None) -> PartitionFilter:
    """`topic` is an include list, and `partitions` is a list of numbers such as 0,1,2. None stands for all."""
    pattern = topic_pattern(".*" if topic is None else topic)
    return PartitionFilter((Rule(pattern, _numbers(partitions) if partitions else _ALL),))


def _numbers(text: str) -> set[int]:
    try:
        return {parse_int(each) for each in text.split(",")}
    except ValueError:
        raise CommandFailed(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def of_rules(text: str) -> PartitionFilter:
    """Parse rules separated by commas: topic, topic:1, topic:1-3 (without 3), topic:1- and topic:-3. The topic is a
    regular expression; a rule without one applies to all topics."""
    return PartitionFilter(tuple(_rule(each) for each in text.split(",")))


def _rule(text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise CommandFailed(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}")
    topic, exact, lower, upper = found.groups()
    pattern = topic_pattern(topic or ".*")
    if exact:
        return Rule(pattern, (int(exact),))
    return Rule(pattern, range(int(lower or 0), int(upper) if upper else _ALL.stop))
