"""Joins of two tables by key (KTableKTableInnerJoin, KTableKTableLeftJoin, KTableKTableRightJoin and
KTableKTableOuterJoin, KTableKTableJoinMerger).

A change of either table looks up the other's value. Both sides feed one step, which is the joined table. A result has
the later of the two timestamps. The joined table has a store only if the program names one; otherwise, a lookup reads
both tables and joins the values again.
"""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.joiners import keyed
from kaspar.streams.operators.tables import Getter, TableNode
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver


class TableJoinSide(Node):
    """Joins the changes of one table with the values of the other. A result requires this side's value, the other's,
    both, or (in an outer join) at least one of them."""

    def __init__(
        self,
        name: str,
        other: TableNode,
        joiner: Callable[..., Any],
        *,
        is_left: bool,
        with_key: bool,
        needs_this: bool,
        needs_other: bool,
    ) -> None:
        super().__init__(name)
        self.other = other
        self.joiner = joiner
        self.is_left = is_left
        self.with_key = with_key
        self.needs_this = needs_this
        self.needs_other = needs_other
        self.sends_old_values = False

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        get, sends_old = self.other.getter(context), self.sends_old_values
        join = keyed(self.joiner, with_key=self.with_key, swapped=not self.is_left)
        needs_this, needs_other = self.needs_this, self.needs_other

        def receive(key: Any, change: Any, timestamp: int) -> None:
            if key is None:
                context.drop("null-key")
                return
            found = get(key)
            new, old = change
            if found is None:
                if needs_other or (new is None and old is None):
                    return
                other = None
            else:
                other, time = found
                if time > timestamp:
                    timestamp = time
            needs_value = needs_this or other is None
            joined = None if new is None and needs_value else join(key, new, other)
            before = None if not sends_old or (old is None and needs_value) else join(key, old, other)
            forward(key, (joined, before), timestamp)

        return receive


class TableJoin(TableNode):
    """The joined table."""

    def __init__(
        self,
        name: str,
        left: TableNode,
        right: TableNode,
        sides: tuple[TableJoinSide, TableJoinSide],
        store: str | None,
    ) -> None:
        super().__init__(name)
        self.left = left
        self.right = right
        self.sides = sides
        self.store = store

    def send_old_values(self, *, force: bool) -> bool:
        """Old values are joined from the old values of both tables, which need stores for this join anyway."""
        for table, side in zip((self.left, self.right), self.sides, strict=True):
            table.send_old_values(force=True)
            side.sends_old_values = True
        self.sends_old_values = True
        return True

    def getter(self, context: TaskContext) -> Getter:
        if self.store is not None:
            get: Getter = context.store(self.store).get
            return get
        left, right = self.left.getter(context), self.right.getter(context)
        side = self.sides[0]
        join = keyed(side.joiner, with_key=side.with_key)

        def joined(key: Any) -> ValueAndTimestamp[Any] | None:
            one, other = left(key), right(key)
            if one is None and (side.needs_this or other is None):
                return None
            if other is None and side.needs_other:
                return None
            value = join(key, None if one is None else one[0], None if other is None else other[0])
            time = max(found[1] for found in (one, other) if found is not None)
            return None if value is None else ValueAndTimestamp(value, time)

        return joined

    def getter_stores(self) -> list[str]:
        return [self.store] if self.store is not None else self.left.getter_stores() + self.right.getter_stores()

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        sends_old = self.sends_old_values
        if self.store is None:
            return forward if sends_old else _without_old_values(forward)
        put = context.store(self.store).put

        def receive(key: Any, change: Any, timestamp: int) -> None:
            new, old = change
            put(key, None if new is None else ValueAndTimestamp(new, timestamp))
            forward(key, (new, old if sends_old else None), timestamp)

        return receive


def _without_old_values(forward: Receiver) -> Receiver:
    def receive(key: Any, change: Any, timestamp: int) -> None:
        forward(key, (change[0], None), timestamp)

    return receive
