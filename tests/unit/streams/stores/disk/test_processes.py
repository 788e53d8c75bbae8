"""Several processes at one partition: forked, racing, killed."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kaspar.records import Record
from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.disk.environment import boot_mark
from tests.unit.streams.stores.disk.test_ensure import COUNTS, NAMES, Partition

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    partition = Partition(tmp_path / "3", COUNTS, NAMES)
    partition.batch(a=1, b=2)
    assert partition.contents() == {"a": 1, "b": 2}
    return partition


def start_child(work: Callable[[], object]) -> int:
    """Run it in a forked process, as PySpark's workers are. Returns the process id."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid


def in_child(work: Callable[[], object]) -> None:
    assert os.waitpid(start_child(work), 0)[1] == 0


def discard_and_rebuild(partition: Partition) -> None:
    boot_mark(partition.directory).remove()
    assert partition.contents() == {"a": 1, "b": 2}


def test_files_that_another_process_replaced_are_opened_again(partition: Partition) -> None:
    with partition.ensure() as old:
        in_child(lambda: discard_and_rebuild(partition))
        partition.batch(c=3)
        assert partition.contents() == {"a": 1, "b": 2, "c": 3}
        assert old.ends == {"counts": 2, "names": 0}
        assert old.snapshot("counts").get(b"c") is None


def test_a_forked_process_opens_the_state_for_itself(partition: Partition) -> None:
    def child() -> None:
        assert partition.contents() == {"a": 1, "b": 2}
        partition.batch(c=3)
        assert partition.contents() == {"a": 1, "b": 2, "c": 3}

    in_child(child)
    for spec in partition.specs:  # the child's records
        partition.changelog.records.setdefault(spec.name, [])
    partition.changelog.append("counts", b"c", (3).to_bytes(8), 3)
    assert partition.contents() == {"a": 1, "b": 2, "c": 3}
    assert partition.changelog.read_from == []


def test_a_state_in_use_is_not_opened_in_a_forked_process(partition: Partition) -> None:
    def child() -> None:
        with pytest.raises(StreamsError, match="when this process was forked"):
            partition.ensure()

    with partition.ensure() as state:
        in_child(child)
        assert state.snapshot("counts").get(b"a") is not None
    in_child(lambda: partition.ensure().close())


def test_a_killed_process_leaves_a_state_that_is_used(partition: Partition) -> None:
    delta = partition.batch(c=3)
    pid = os.fork()
    if not pid:
        try:
            with partition.ensure(delta.versions.ends):
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    assert partition.contents() == {"a": 1, "b": 2, "c": 3}
    assert partition.changelog.read_from == []


def test_a_process_killed_while_it_reads_the_changelog_leaves_a_state_to_go_on_from(partition: Partition) -> None:
    for number in range(10):
        partition.changelog.append("counts", f"k{number}".encode(), number.to_bytes(8))
    read = partition.changelog.read

    def killed(store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        chunks = read(store, partition, from_offset, to_offset)
        yield next(chunks)
        os.kill(os.getpid(), signal.SIGKILL)

    partition.changelog.read = killed  # type: ignore[method-assign]
    assert os.WIFSIGNALED(os.waitpid(start_child(partition.ensure), 0)[1])
    partition.changelog.read = read  # type: ignore[method-assign]
    assert partition.contents() == {"a": 1, "b": 2, **{f"k{number}": number for number in range(10)}}
    assert partition.changelog.read_from == [("counts", 5)]


def test_processes_that_race_for_different_versions_each_get_their_own(partition: Partition) -> None:
    """Tasks of an older batch may still run while the next has begun."""
    older = partition.changelog.ends(partition.specs)
    partition.batch(a=3, c=4)
    newer = partition.changelog.ends(partition.specs)
    expected = [(older, {"a": 1, "b": 2}), (newer, {"a": 3, "b": 2, "c": 4})]

    def race(number: int) -> None:
        for step in range(10):
            wanted, contents = expected[(number + step // 3) % 2]
            assert partition.contents(wanted) == contents

    children = [start_child(lambda number=number: race(number)) for number in range(4)]  # type: ignore[misc]
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert partition.contents() == {"a": 3, "b": 2, "c": 4}
