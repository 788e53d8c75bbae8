"""Offsets are written as Spark's own connector writes them."""

import json

from kaspar.base.ids import TopicPartition
from kaspar.spark.offsets import from_json, to_json


def test_offsets_are_nested_by_topic_and_partition_as_text() -> None:
    offsets = {TopicPartition("orders", 0): 5, TopicPartition("clicks", 1): 7}
    assert to_json(offsets) == {"clicks": {"1": 7}, "orders": {"0": 5}}
    assert from_json(to_json(offsets)) == offsets


def test_equal_offsets_are_equal_texts() -> None:
    """By which Spark sees that there is nothing new; partitions are in the order of their numbers."""
    numbers = [10, 2, 0]
    one = {TopicPartition("clicks", number): 0 for number in numbers}
    other = {TopicPartition("clicks", number): 0 for number in reversed(numbers)}
    assert json.dumps(to_json(one)) == json.dumps(to_json(other)) == '{"clicks": {"0": 0, "2": 0, "10": 0}}'
