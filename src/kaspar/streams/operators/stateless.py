"""Operators that process one record at a time (KStreamMap, KStreamFilter, KStreamBranch and others)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver


class Map(Node):
    def __init__(self, name: str, mapper: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        super().__init__(name)
        self.mapper = mapper

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        mapper = self.mapper

        def receive(key: Any, value: Any, timestamp: int) -> None:
            key, value = mapper(key, value)
            forward(key, value, timestamp)

        return receive


class MapValues(Node):
    def __init__(self, name: str, mapper: Callable[..., Any], *, with_key: bool = False) -> None:
        super().__init__(name)
        self.mapper = mapper
        self.with_key = with_key

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        mapper = self.mapper

        def receive(key: Any, value: Any, timestamp: int) -> None:
            forward(key, mapper(value), timestamp)

        def receive_with_key(key: Any, value: Any, timestamp: int) -> None:
            forward(key, mapper(key, value), timestamp)

        return receive_with_key if self.with_key else receive


class FlatMap(Node):
    def __init__(self, name: str, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> None:
        super().__init__(name)
        self.mapper = mapper

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        mapper = self.mapper

        def receive(key: Any, value: Any, timestamp: int) -> None:
            for new_key, new_value in mapper(key, value):
                forward(new_key, new_value, timestamp)

        return receive


class FlatMapValues(Node):
    def __init__(self, name: str, mapper: Callable[..., Iterable[Any]], *, with_key: bool = False) -> None:
        super().__init__(name)
        self.mapper = mapper
        self.with_key = with_key

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        mapper = self.mapper

        def receive(key: Any, value: Any, timestamp: int) -> None:
            for each in mapper(value):
                forward(key, each, timestamp)

        def receive_with_key(key: Any, value: Any, timestamp: int) -> None:
            for each in mapper(key, value):
                forward(key, each, timestamp)

        return receive_with_key if self.with_key else receive


class Filter(Node):
    def __init__(self, name: str, predicate: Callable[[Any, Any], bool], *, negated: bool = False) -> None:
        super().__init__(name)
        self.predicate = predicate
        self.negated = negated

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        predicate = self.predicate

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if predicate(key, value):
                forward(key, value, timestamp)

        def receive_negated(key: Any, value: Any, timestamp: int) -> None:
            if not predicate(key, value):
                forward(key, value, timestamp)

        return receive_negated if self.negated else receive


class SelectKey(Node):
    def __init__(self, name: str, mapper: Callable[[Any, Any], Any]) -> None:
        super().__init__(name)
        self.mapper = mapper

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        mapper = self.mapper

        def receive(key: Any, value: Any, timestamp: int) -> None:
            forward(mapper(key, value), value, timestamp)

        return receive


class Peek(Node):
    """Calls a function for each record, and forwards it; `foreach` is a peek without children."""

    def __init__(self, name: str, action: Callable[[Any, Any], object]) -> None:
        super().__init__(name)
        self.action = action

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        action = self.action

        def receive(key: Any, value: Any, timestamp: int) -> None:
            action(key, value)
            forward(key, value, timestamp)

        return receive


class Branch(Node):
    """Passes each record to the first child whose predicate holds; other records are dropped."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.predicates: list[Callable[[Any, Any], bool]] = []
        """The predicates of the children, in the same order."""

    def bind(self, context: TaskContext, children: Sequence[Receiver]) -> Receiver:
        branches = tuple(zip(self.predicates, children, strict=True))

        def receive(key: Any, value: Any, timestamp: int) -> None:
            for predicate, forward in branches:
                if predicate(key, value):
                    forward(key, value, timestamp)
                    return

        return receive


class DropNullKeys(Node):
    """Drops records without a key before a repartitioning, as Kafka's repartition filter does: they belong to no group.
    Passes all records if a downstream join has results for them (NodesWithRelaxedNullKeyJoinDownstream)."""

    is_relaxed = False

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        if self.is_relaxed:
            return forward

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is not None:
                forward(key, value, timestamp)

        return receive


def relax_null_keys(nodes: Iterable[Node]) -> None:
    for node in nodes:
        if isinstance(node, DropNullKeys):
            node.is_relaxed = any(behind.joins_null_keys for behind in _all_behind(node))


def _all_behind(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _all_behind(child)
