"""The branches of a split stream (KStream.split)."""

from collections.abc import Callable
from typing import Any, Generic, Self

from kaspar.streams.dsl.handles import Stream
from kaspar.streams.operators import stateless
from kaspar.streams.topology.node import PassThrough


class BranchedKStream(Generic[Stream]):
    """The branches of a split stream, in the order in which their predicates are tried."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._name = name
        self._node = stateless.Branch(name)
        self._branches: dict[str, Stream] = {}
        stream._add(self._node)

    def branch(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str | None = None,
        *,
        consumer: Callable[[Stream], object] | None = None,
        chain: Callable[[Stream], Stream] | None = None,
    ) -> Self:
        """Add a branch for the records for which `predicate(key, value)` is the first predicate that holds. `chain` is
        applied to the branch. A branch with a `consumer` is passed to it, and is not among the results."""
        self._add(predicate, name or str(len(self._node.predicates) + 1), consumer, chain)
        return self

    def default_branch(
        self,
        name: str | None = None,
        *,
        consumer: Callable[[Stream], object] | None = None,
        chain: Callable[[Stream], Stream] | None = None,
    ) -> dict[str, Stream]:
        """Add a branch for all other records. Returns the branches by name."""
        self._add(lambda key, value: True, name or "0", consumer, chain)
        return self._branches

    def no_default_branch(self) -> dict[str, Stream]:
        """Drop all other records. Returns the branches by name."""
        return self._branches

    def _add(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str,
        consumer: Callable[[Stream], object] | None,
        chain: Callable[[Stream], Stream] | None,
    ) -> None:
        stream = self._stream
        node = PassThrough(f"{self._name}-{name}")
        node.input_serdes = stream.key_serde, stream.value_serde
        stream.graph.add(node, [self._node])
        self._node.predicates.append(predicate)
        branch = stream.at(node, stream.key_serde, stream.value_serde, needs_repartition=stream.needs_repartition)
        if consumer is not None:
            consumer(branch)
        else:
            self._branches[name] = branch if chain is None else chain(branch)
