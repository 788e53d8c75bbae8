"""The steps of a topology, and their receivers.

A node only describes a step: it holds the program's functions and the names of stores, is built once, and is pickled to
Spark's workers. bind() creates its receiver for one task: a function of (key, value, timestamp) that calls the
receivers of its children. On the edges after a table, a value is the pair (new value, old value); the old value is None
if no step needs it (as in KTableImpl.enableSendingOldValues).
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kaspar.streams.serdes import Serde
from kaspar.streams.topology.context import TaskContext

Receiver: TypeAlias = Callable[[Any, Any, int], None]


class Node:
    """A step with any number of parents, which all call the same receiver."""

    needs_task = False
    """Whether the step must run in the task of its key, although it has no store."""
    global_stores: Sequence[str] | None = ()
    """The stores of the global tables that the step may look up; None means all of them."""
    joins_null_keys = False
    """Whether the step has results for records without a key: left and outer joins of streams (KIP-962)."""

    def __init__(self, name: str, *, stores: Sequence[str] = ()) -> None:
        self.name = name
        self.stores: list[str] = list(stores)
        """The names of the stores that the step uses."""
        self.input_serdes: tuple[Serde[Any] | None, Serde[Any] | None] = (None, None)
        """The serdes of received keys and values, if known."""
        self.parents: list[Node] = []
        self.children: list[Node] = []

    @property
    def is_stateful(self) -> bool:
        return bool(self.stores) or self.needs_task

    def bind(self, context: TaskContext, children: Sequence[Receiver]) -> Receiver:
        """Create the receiver of this node in a task from the receivers of its children, in their order."""
        return self.receiver(context, fan_out(children))

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        """Create the receiver, for a node that forwards every record to all of its children."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


def fan_out(receivers: Sequence[Receiver]) -> Receiver:
    """A receiver that calls all of these, in order."""
    if not receivers:
        return _ignore
    if len(receivers) == 1:
        return receivers[0]
    if len(receivers) == 2:
        first, second = receivers

        def both(key: Any, value: Any, timestamp: int) -> None:
            first(key, value, timestamp)
            second(key, value, timestamp)

        return both
    several = tuple(receivers)

    def each(key: Any, value: Any, timestamp: int) -> None:
        for receive in several:
            receive(key, value, timestamp)

    return each


def _ignore(key: Any, value: Any, timestamp: int) -> None:
    """The receiver for a node without children."""


class PassThrough(Node):
    """Forwards all records unchanged: a merge, a branch, or a name for another step."""

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        return forward
