"""Runs a topology with the topics `left` and `right` on a sequence of records."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kaspar.streams import Topology, TopologyTestDriver
from kaspar.streams.serdes import Serde

Emitted = list[tuple[Any, Any, int]]


class Run(NamedTuple):
    steps: list[Emitted]
    """What each record has led to: keys, values and timestamps of the topic `out`."""
    dropped: Counter[str]
    topics: list[str]
    """The topic of every record that was written."""

    @property
    def emitted(self) -> Emitted:
        return [record for step in self.steps for record in step]


def plus(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def run(
    topology: Topology,
    records: Sequence[tuple[str, Any, Any, int]],
    *,
    config: Mapping[str, Any] | None = None,
    key_serde: Serde[Any] | None = None,
) -> Run:
    """`records`: topic, key, value and timestamp of each."""
    with TopologyTestDriver(topology, config) as driver:
        inputs = {topic: driver.create_input_topic(topic) for topic, _, _, _ in records}
        out = driver.create_output_topic("out", key_serde=key_serde)
        steps: list[Emitted] = []
        for topic, key, value, timestamp in records:
            inputs[topic].pipe_input(key, value, timestamp)
            steps.append([record[:3] for record in out.read_records_to_list()])
        return Run(steps, driver.dropped, [topic for topic, _ in driver.produced])
