"""The same topologies on the same inputs, in kaspar.streams and in Kafka Streams: all that they write is equal."""

from collections.abc import Mapping, Sequence

import pytest

from tests.peers.java_program import platform_jars
from tests.peers.missing import unless_missing
from tests.streams.compat import kafka_streams, kaspar_streams
from tests.streams.compat.comparison import difference
from tests.streams.compat.generators import inputs
from tests.streams.compat.kafka_streams import Job
from tests.streams.compat.results import Result
from tests.streams.compat.topologies import DEFINITIONS


def jobs_of(topology: str) -> list[Job]:
    found = inputs(DEFINITIONS[topology].topics)
    return [Job(topology, name, steps) for name, steps in found.items()]


@pytest.fixture(scope="session")
def expected(request: pytest.FixtureRequest) -> Mapping[str, Sequence[Result]]:
    """What Kafka Streams gives for each of the topologies that this run tests: the results of jobs_of, in its order."""
    unless_missing(platform_jars)
    chosen = [item.callspec.params["topology"] for item in request.session.items if _is_comparison(item)]
    jobs = {topology: jobs_of(topology) for topology in dict.fromkeys(chosen)}
    results = iter(kafka_streams.run([job for each in jobs.values() for job in each]))
    return {topology: [next(results) for _ in each] for topology, each in jobs.items()}


def _is_comparison(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "expected" in item.fixturenames


@pytest.mark.parametrize("topology", DEFINITIONS)
def test_all_that_is_written_is_what_kafka_streams_writes(
    topology: str, expected: Mapping[str, Sequence[Result]]
) -> None:
    for job, theirs in zip(jobs_of(topology), expected[topology], strict=True):
        assert theirs.error is None, f"{job} fails in Kafka Streams: {theirs.error}"
        ours = kaspar_streams.run(job)
        assert (found := difference(job, ours, theirs)) is None, found
