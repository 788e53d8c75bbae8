"""The same topologies on the same inputs, in kaspar.streams and in Kafka Streams: all that they write is equal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.peers.java_program import platform_jars
from tests.peers.missing import unless_missing
from tests.streams.compat import kafka_streams, kaspar_streams
from tests.streams.compat.comparison import difference
from tests.streams.compat.jobs import (
    Group,
    all_inputs,
    all_inputs_with_rocksdb,
    long_chains,
    long_chains_of_tables,
    pairs,
    pairs_of_tables,
)
from tests.streams.compat.kafka_streams import Job
from tests.streams.compat.results import Result
from tests.streams.compat.topologies import DEFINITIONS, OPERATORS, TABLE_OPERATORS

pytestmark = pytest.mark.timeout(300)  # the first test waits for Kafka Streams
LONG_SECONDS = 1_200

Expected = Mapping[Group, Sequence[tuple[Job, Result]]]


def groups(jobs_of: Callable[[str], list[Job]], names: Iterable[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("group", [pytest.param(partial(jobs_of, name), id=name) for name in names])


@pytest.fixture(scope="session")
def expected(request: pytest.FixtureRequest) -> Expected:
    """What Kafka Streams gives for the jobs of all tests of this session: it runs them in one process."""
    unless_missing(platform_jars)
    jobs = {group: group() for item in request.session.items for group in _groups_of(item)}
    results = iter(kafka_streams.run([job for each in jobs.values() for job in each]))
    return {group: [(job, next(results)) for job in each] for group, each in jobs.items()}


def _groups_of(item: pytest.Item) -> Iterator[Group]:
    if isinstance(item, pytest.Function) and item.path == Path(__file__):
        group = item.callspec.params["group"]
        assert callable(group)
        yield group


@groups(all_inputs, DEFINITIONS)
def test_a_topology_writes_what_kafka_streams_writes(group: Group, expected: Expected) -> None:
    assert_equal(expected[group])


@groups(pairs, OPERATORS)
def test_any_operator_after_this_one_writes_what_kafka_streams_writes(group: Group, expected: Expected) -> None:
    assert_equal(expected[group])


@groups(pairs_of_tables, TABLE_OPERATORS)
def test_any_operator_of_tables_after_this_one_writes_what_kafka_streams_writes(
    group: Group, expected: Expected
) -> None:
    assert_equal(expected[group])


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@groups(long_chains, OPERATORS)
def test_long_chains_write_what_kafka_streams_writes(group: Group, expected: Expected) -> None:
    assert_equal(expected[group])


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@groups(long_chains_of_tables, TABLE_OPERATORS)
def test_long_chains_of_tables_write_what_kafka_streams_writes(group: Group, expected: Expected) -> None:
    assert_equal(expected[group])


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS)
@groups(all_inputs_with_rocksdb, DEFINITIONS)
def test_stores_in_memory_stand_for_kafka_streams_default_stores(group: Group, expected: Expected) -> None:
    assert_equal(expected[group])


def assert_equal(expected: Sequence[tuple[Job, Result]]) -> None:
    for job, theirs in expected:
        assert theirs.error is None, f"{job} fails in Kafka Streams: {theirs.error}"
        ours = kaspar_streams.run(job)
        found = difference(job, ours, theirs)
        assert found is None, found
