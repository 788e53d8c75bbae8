"""The embedded store against a model: random transactions of several sessions, closings and reopenings.

ZooKeeper plays the same (tests/integration/metadata).
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import ANY_VERSION, Check, Create, Delete, Operation, Put, Store, VersionConflict, parent_of

PATHS = ["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep"]
SESSIONS = 3

paths = st.sampled_from(PATHS)
values = st.binary(max_size=4)
versions = st.sampled_from([ANY_VERSION, 0, 1, 2])
operations = st.one_of(
    st.builds(Create, paths, values, st.booleans()),
    st.builds(Put, paths, values, versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


@dataclass(frozen=True)
class Transact:
    session: int
    operations: list[Operation]


@dataclass(frozen=True)
class Watch:
    session: int
    path: str
    of_children: bool


@dataclass(frozen=True)
class EndSession:
    session: int


@dataclass(frozen=True)
class Reopen:
    pass


sessions = st.integers(0, SESSIONS - 1)
actions = st.one_of(
    st.builds(Transact, sessions, st.lists(operations, min_size=1, max_size=4)),
    st.builds(Watch, sessions, paths, st.booleans()),
    st.builds(EndSession, sessions),
    st.builds(Reopen),
)


@dataclass
class ModelNode:
    value: bytes
    version: int
    owner: int | None


@dataclass
class Model:
    nodes: dict[str, ModelNode] = field(default_factory=dict)
    watches: set[tuple[int, str, bool]] = field(default_factory=set)
    fired: set[tuple[int, str, bool]] = field(default_factory=set)

    def transact(self, session: int, operations: list[Operation]) -> bool:
        draft = {path: ModelNode(node.value, node.version, node.owner) for path, node in self.nodes.items()}
        if not all(self._apply(draft, session, operation) for operation in operations):
            return False
        self.nodes = draft
        for operation in operations:
            if isinstance(operation, Check):
                continue
            self._fire(operation.path, of_children=False)
            if isinstance(operation, Create | Delete):
                self._fire(parent_of(operation.path), of_children=True)
        return True

    def end_session(self, session: int) -> None:
        self.watches = {watch for watch in self.watches if watch[0] != session}
        for path in sorted(path for path, node in self.nodes.items() if node.owner == session):
            del self.nodes[path]
            self._fire(path, of_children=False)
            self._fire(parent_of(path), of_children=True)

    def children(self, path: str) -> list[str]:
        return sorted(each.rpartition("/")[2] for each in self.nodes if parent_of(each) == path)

    def _apply(self, nodes: dict[str, ModelNode], session: int, operation: Operation) -> bool:
        node = nodes.get(operation.path)
        if isinstance(operation, Create):
            parent = parent_of(operation.path)
            if node is not None or (parent != "/" and (parent not in nodes or nodes[parent].owner is not None)):
                return False
            nodes[operation.path] = ModelNode(operation.value, 0, session if operation.ephemeral else None)
            return True
        if node is None or operation.version not in (ANY_VERSION, node.version):
            return False
        if isinstance(operation, Put):
            nodes[operation.path] = ModelNode(operation.value, node.version + 1, node.owner)
        if isinstance(operation, Delete):
            if any(parent_of(path) == operation.path for path in nodes):
                return False
            del nodes[operation.path]
        return True

    def _fire(self, path: str, *, of_children: bool) -> None:
        due = {watch for watch in self.watches if watch[1:] == (path, of_children)}
        self.watches -= due
        self.fired |= due


class Metadata(Protocol):
    def connect(self) -> Store: ...

    async def close(self) -> None: ...


Open = Callable[[], Awaitable[Metadata]]


class Subject:
    """The real store, with its sessions and the watches that fired."""

    def __init__(self, open_metadata: Open) -> None:
        self.open_metadata = open_metadata
        self.fired: set[tuple[int, str, bool]] = set()

    async def open(self) -> None:
        self.metadata = await self.open_metadata()
        self.stores: list[Store] = [self.metadata.connect() for _ in range(SESSIONS)]

    async def watch(self, action: Watch) -> None:
        watch = (action.session, action.path, action.of_children)
        read = self.stores[action.session].children if action.of_children else self.stores[action.session].get
        await read(action.path, lambda path: self.fired.add(watch))

    async def end_session(self, session: int) -> None:
        await self.stores[session].close()
        self.stores[session] = self.metadata.connect()


async def compare(model: Model, subject: Subject, *, fires_more: bool) -> None:
    for session, store in enumerate(subject.stores):
        for path, node in zip(PATHS, await store.get_many(PATHS), strict=True):
            expected = model.nodes.get(path)
            if expected is None:
                assert node is None
            else:
                assert node is not None
                found = (node.value, node.version, node.is_mine)
                assert found == (expected.value, expected.version, expected.owner == session)
        for path in ("/", *PATHS):
            assert await store.children(path) == model.children(path)
    assert subject.fired == model.fired or (fires_more and subject.fired > model.fired)


Script = list[Transact | Watch | EndSession | Reopen]


async def play(script: Script, open_metadata: Open, *, fires_more: bool = False) -> None:
    """`fires_more`: a watcher may also be called when nothing has changed, and never too little."""
    model, subject = Model(), Subject(open_metadata)
    await subject.open()
    for action in script:
        match action:
            case Transact(session, steps):
                expected = model.transact(session, steps)
                try:
                    await subject.stores[session].transact(steps)
                    done = True
                except VersionConflict:
                    done = False
                assert done == expected
            case Watch(session, path, of_children):
                model.watches.add((session, path, of_children))
                model.fired.discard((session, path, of_children))
                subject.fired.discard((session, path, of_children))
                await subject.watch(action)
            case EndSession(session):
                model.end_session(session)
                await subject.end_session(session)
            case Reopen():
                for session in range(SESSIONS):
                    model.end_session(session)
                model.watches, model.fired = set(), set()
                await subject.metadata.close()
                subject.fired = set()
                await subject.open()
        await compare(model, subject, fires_more=fires_more)
    await subject.metadata.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=25))
def test_the_store_is_its_model(script: Script) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(script, lambda: SqliteMetadata.open(Path(folder))))
