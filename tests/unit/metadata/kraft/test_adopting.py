"""A folder has one owner at every moment, Kafka or Kaspar, also after a crash in the middle of an adoption."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId
from kaspar.controller.registration import register_broker
from kaspar.metadata.directories import known_directories, store_folder
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.kraft.adopting import Adoption, AdoptionRefused
from kaspar.metadata.layout import store_paths
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.moved_mark import MovedMark
from kaspar.metadata.moving import refuse_unmoved
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Store
from kaspar.records import Record, build_batch
from kaspar.storage.directories.directory_lock import DirectoryLock
from kaspar.storage.disk import files
from tests.unit.controller.clusters import broker
from tests.unit.metadata.kraft.kafka_folders import (
    FIRST,
    METADATA_LOG,
    QUORUM_STATE,
    SECOND,
    Node,
    batch,
    footer,
    level,
    usual,
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, ("data", "more")).write(usual())


def adopt(node: Node) -> None:
    async def run() -> None:
        adoption = Adoption(node.config())
        with adoption.locked():
            assert not await adoption.is_done()
            await adoption.carry_out(adoption.plan())

    asyncio.run(run())


def undo(node: Node) -> None:
    async def run() -> None:
        adoption = Adoption(node.config())
        with adoption.locked():
            await adoption.undo()

    asyncio.run(run())


def in_store(node: Node, work: Callable[[Store], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        metadata = await SqliteMetadata.open(node.paths[0])
        try:
            return await work(metadata.connect())
        finally:
            await metadata.close()

    return asyncio.run(run())


def kafka_starts(node: Node) -> bool:
    """Kafka reads this file first, and knows the data versions 0 and 1."""
    return bool(json.loads(node.quorum_state.read_text())["data_version"] <= 1)


def kaspar_starts(node: Node) -> bool:
    paths = [str(path) for path in node.paths]
    try:
        store_folder(None, paths, formatted=paths)
    except KasparError:
        return False
    return True


def contents(node: Node) -> dict[str, bytes]:
    return {
        str(path.relative_to(node.folder)): path.read_bytes()
        for path in node.folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_the_store_has_what_kafka_had(node: Node) -> None:
    before = contents(node)
    assert (kafka_starts(node), kaspar_starts(node)) == (True, False)
    adopt(node)
    assert (kafka_starts(node), kaspar_starts(node)) == (False, True)
    image: ClusterImage = in_store(node, load_image)
    assert image.topics["orders"].partitions[0].leader_epoch == 4
    assert image.next_producer_id == 3000
    directories = in_store(node, lambda store: known_directories(store, BrokerId(1)))
    assert directories == {FIRST: str(node.paths[0]), SECOND: str(node.paths[1])}
    after = contents(node)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"data/metadata.db", f"data/{METADATA_LOG}/quorum-state"}


def test_undoing_leaves_the_folder_as_it_was(node: Node) -> None:
    before = contents(node)
    adopt(node)
    undo(node)
    assert contents(node) == before
    with pytest.raises(AdoptionRefused, match="has not been adopted"):
        undo(node)
    adopt(node)
    assert not kafka_starts(node)


def test_adopting_again_is_done_already(node: Node) -> None:
    adopt(node)

    async def again() -> bool:
        return await Adoption(node.config()).is_done()

    assert asyncio.run(again())


@contextmanager
def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[list[str]]:
    """The power fails before the change with this number: of file names, or of what is durable."""
    done: list[str] = []

    def counting(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def step(*arguments: Any) -> None:
            if len(done) == number:
                raise KeyboardInterrupt
            done.append(name)
            real(*arguments)

        return step

    with monkeypatch.context() as patched:
        for name in ("rename", "unlink", "fsync_dir"):
            patched.setattr(files.OsFiles, name, staticmethod(counting(name, getattr(files.OsFiles(), name))))
        yield done


@pytest.mark.parametrize("way", ["adopt", "undo"])
@pytest.mark.parametrize("back", ["adopt", "undo"])
def test_a_crash_at_any_step_leaves_at_most_one_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, back: str
) -> None:
    for number in range(100):
        node = Node(tmp_path / str(number)).write(usual())
        original = contents(node)
        if way == "undo":
            adopt(node)
        with crash_at(monkeypatch, number) as done:
            try:
                adopt(node) if way == "adopt" else undo(node)
            except KeyboardInterrupt:
                pass
            else:
                break
        assert not (kafka_starts(node) and kaspar_starts(node)), done
        if back == "undo" and kafka_starts(node) and way == "adopt":
            continue  # nothing of the adoption has happened
        if back == "undo":
            if not kafka_starts(node):
                undo(node)
            assert (kafka_starts(node), kaspar_starts(node)) == (True, False)
            remaining = {name for name in contents(node) if not name.endswith((".adopting", ".tmp"))}
            assert remaining == set(original)
        elif not kaspar_starts(node):
            adopt(node)
            assert (kafka_starts(node), kaspar_starts(node)) == (False, True)
            assert in_store(node, load_image).topics.keys() == {"orders"}
    assert number > 4, "there was no step to crash at"


def test_a_store_that_a_broker_has_used_stays(node: Node) -> None:
    adopt(node)
    in_store(node, lambda store: register_broker(store, broker(1)))
    with pytest.raises(AdoptionRefused, match="a broker has been started since"):
        undo(node)
    assert (kafka_starts(node), kaspar_starts(node)) == (False, True)


def test_a_store_that_was_moved_to_zookeeper_stays(node: Node) -> None:
    adopt(node)

    async def mark() -> None:
        metadata = await SqliteMetadata.open(node.paths[0])
        await metadata.mark_moved(MovedMark("zk:2181", 0))
        await metadata.close()

    asyncio.run(mark())
    with pytest.raises(AdoptionRefused, match="moved to ZooKeeper at zk:2181"):
        undo(node)


@pytest.mark.parametrize("directory", [0, 1])
def test_a_folder_in_use_is_left_alone(node: Node, directory: int) -> None:
    before = contents(node)
    lock = DirectoryLock(str(node.paths[directory]))
    try:
        with pytest.raises(AdoptionRefused, match="in use by a running broker: stop it first"):
            adopt(node)
    finally:
        lock.release()
    assert contents(node) == before


def test_planning_changes_nothing(node: Node) -> None:
    before = contents(node)
    adoption = Adoption(node.config())
    with adoption.locked():
        adoption.plan()
    assert contents(node) == before


def test_a_store_of_another_origin_stays(node: Node) -> None:
    in_store(node, prepare_store)
    with pytest.raises(AdoptionRefused, match="was not adopted from Kafka"):
        adopt(node)
    assert kafka_starts(node)


def test_what_is_not_kafkas_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with pytest.raises(AdoptionRefused, match="no metadata log of Kafka"):
        Adoption(node.config())
    with pytest.raises(AdoptionRefused, match=r"zookeeper.connect is set"):
        Adoption(node.config(**{"zookeeper.connect": "zk:2181"}))


def test_a_folder_that_was_only_formatted_is_refused(node: Node) -> None:
    node.segment(0).unlink()
    with pytest.raises(AdoptionRefused, match="never been started"):
        adopt(node)


def test_records_of_a_later_kafka_are_refused(node: Node) -> None:
    end = 1 + len(usual())
    segment = node.segment(end, batch(end, level()))
    octets = segment.read_bytes()
    segment.write_bytes(build_batch([Record(0, None, b"\x01\x3c\x00")], base_offset=end))
    with pytest.raises(AdoptionRefused, match=r"later than 4\.3: a metadata record is of kind 60"):
        adopt(node)
    segment.write_bytes(build_batch([Record(0, None, b"\x01\x0c")], base_offset=end))
    with pytest.raises(AdoptionRefused, match="is damaged"):
        adopt(node)
    segment.write_bytes(octets)
    adopt(node)


def test_voters_are_known_even_if_a_snapshot_has_none(node: Node) -> None:
    node.snapshot(1 + len(usual()), batch(0, *usual()), footer(5))
    adoption = Adoption(node.config())
    assert adoption.plan().obstacles == ()
    state: dict[str, Any] = {**QUORUM_STATE, "currentVoters": [{"voterId": 1}, {"voterId": 2}]}
    node.quorum_state.write_text(json.dumps(state))
    (obstacle,) = adoption.plan().obstacles
    assert "the voters of the metadata quorum are 1, 2" in obstacle
    del state["currentVoters"]
    node.quorum_state.write_text(json.dumps(state))
    (obstacle,) = adoption.plan().obstacles
    assert "are none" in obstacle
    node.quorum_state.write_text("[]")
    with pytest.raises(KasparError, match="quorum-state is damaged"):
        adoption.plan()


def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    node = Node(tmp_path).write(usual())
    own = tmp_path / "own"
    own.mkdir()
    node.metadata_log.rename(own / METADATA_LOG)

    async def run() -> None:
        adoption = Adoption(node.config(**{"metadata.log.dir": str(own)}))
        with adoption.locked():
            await adoption.carry_out(adoption.plan())

    asyncio.run(run())
    assert (own / "metadata.db").exists()
    assert not node.store.exists()
    assert store_folder(str(own), [str(node.paths[0])], formatted=[str(node.paths[0])]) == own


def test_a_broker_on_zookeeper_does_not_ignore_kafkas_metadata(node: Node, tmp_path: Path) -> None:
    paths = [str(path) for path in node.paths]

    async def run() -> None:
        elsewhere = await SqliteMetadata.open(tmp_path)
        try:
            await refuse_unmoved(elsewhere.connect(), paths, cluster_id=None, connect="zk:2181")
        finally:
            await elsewhere.close()

    with pytest.raises(KasparError, match="kaspar metadata adopt"):
        asyncio.run(run())


def test_the_replaced_file_says_why_kafka_does_not_start(node: Node) -> None:
    adopt(node)
    content = json.loads(node.quorum_state.read_text())
    assert "kaspar metadata adopt FILE --undo" in content["note"]
    assert json.loads(content["original"]) == QUORUM_STATE
    assert in_store(node, lambda store: store.get(store_paths.ADOPTED)) is not None
