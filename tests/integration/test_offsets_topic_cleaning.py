"""`__consumer_offsets` stays as small as the groups are, whatever they commit, and is loaded as quickly as it is small.

`--long` runs the same with a million commits.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import RawOffsets, commit, committed

TOPIC = "__consumer_offsets"
PARTITIONS = 100  # of the topic whose offsets are committed, all with one request
SEGMENT_BYTES = 1 << 20  # the smallest that a topic may have
NEVER_CLEANED = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(SEGMENT_BYTES),
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "1",
}
CLEANED_SOON = {**NEVER_CLEANED, "log.cleaner.min.cleanable.ratio": "0.01"}
CLEANING_SECONDS = 100.0
sizes = pytest.mark.parametrize(
    "commits", [60_000, pytest.param(1_000_000, marks=(pytest.mark.long, pytest.mark.timeout(600)))]
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path, overrides=CLEANED_SOON) as running:
        yield running


def _commit(broker: ObservedBroker, groups: int, commits: int) -> int:
    """Every group commits all its partitions in turn, until there were so many commits; the last round's number."""
    rounds = commits // (groups * PARTITIONS)
    with broker.client() as client:
        assert client.create_topic("orders", partitions=PARTITIONS) == 0
        RawOffsets(client, "group-0")  # finds the coordinator, so that there is one
        for number in range(1, rounds + 1):
            offsets = {partition: number * 1000 + partition for partition in range(PARTITIONS)}
            for group in range(groups):
                assert commit(client, f"group-{group}", "orders", offsets) == ErrorCode.NONE
    return rounds


def _active_base_offset(broker: ObservedBroker) -> int:
    return int(broker.segment_files(TOPIC)[-1].stem)


def _wait_until_clean(broker: ObservedBroker) -> None:
    """Up to the active segment, says the cleaner's own checkpoint."""
    checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
    wanted = f"{TOPIC} 0 {_active_base_offset(broker)}"
    wait_until(
        lambda: checkpoint.exists() and wanted in checkpoint.read_text().splitlines(),
        "the offsets topic is clean",
        seconds=CLEANING_SECONDS,
    )


def _check_offsets(client: RawClient, groups: range, last_round: int) -> None:
    expected = {partition: last_round * 1000 + partition for partition in range(PARTITIONS)}
    for group in groups:
        RawOffsets(client, f"group-{group}")
        response = committed(client, f"group-{group}", "orders", *range(PARTITIONS))
        while response[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            response = committed(client, f"group-{group}", "orders", *range(PARTITIONS))
        assert response == (ErrorCode.NONE, expected), f"group-{group}"


def _loaded_records(broker: ObservedBroker) -> int:
    line = broker.log_lines("loaded a coordinator's partition")[-1]
    return int(next(word for word in line.split() if word.startswith("records=")).removeprefix("records="))


@sizes
def test_many_commits_of_few_groups_clean_down_to_one_record_each(broker: ObservedBroker, commits: int) -> None:
    groups = 10
    last_round = _commit(broker, groups, commits)
    _wait_until_clean(broker)
    active = commits - _active_base_offset(broker)
    broker.kill()
    broker.start()
    with broker.client() as client:
        _check_offsets(client, range(groups), last_round)
    assert _loaded_records(broker) == groups * PARTITIONS + active


@sizes
def test_commits_of_many_groups_stay_every_one(broker: ObservedBroker, commits: int) -> None:
    groups = commits // PARTITIONS // 2  # twice each
    last_round = _commit(broker, groups, commits)
    _wait_until_clean(broker)
    broker.kill()
    broker.start()
    with broker.client() as client:
        _check_offsets(client, range(0, groups, 7), last_round)
    assert groups * PARTITIONS <= _loaded_records(broker) < commits


def test_offsets_are_loaded_while_their_log_is_being_cleaned(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path, overrides=NEVER_CLEANED) as broker:
        last_round = _commit(broker, groups=10, commits=60_000)
        assert len(broker.segment_files(TOPIC)) > 3
        broker.kill()
        broker.overrides = CLEANED_SOON | {"kaspar.metrics.listener": "127.0.0.1:0"}
        broker.start()
        with broker.client() as client:
            _check_offsets(client, range(10), last_round)
            _wait_until_clean(broker)
            _check_offsets(client, range(10), last_round)
