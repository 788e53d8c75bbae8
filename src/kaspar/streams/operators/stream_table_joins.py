"""Joins of a stream with a table or a global table: each record looks up the table's current value
(KStreamKTableJoinProcessor).

Changes of the table emit nothing. A joined record keeps its timestamp. A record without a value is dropped, and so is
one without a key to look up, except in a left join, which treats it as unmatched (KIP-962).
"""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.aggregates import NULL_KEY_OR_VALUE
from kaspar.streams.operators.joiners import keyed
from kaspar.streams.operators.tables import Getter, TableNode
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver


class StreamTableJoin(Node):
    def __init__(
        self, name: str, table: TableNode, joiner: Callable[..., Any], *, with_key: bool, keeps_unmatched: bool
    ) -> None:
        super().__init__(name)
        self.table = table
        self.joiner = joiner
        self.with_key = with_key
        self.keeps_unmatched = self.joins_null_keys = keeps_unmatched

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        get, keeps_unmatched = self.table.getter(context), self.keeps_unmatched
        join = keyed(self.joiner, with_key=self.with_key)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if value is None or (key is None and not keeps_unmatched):
                context.drop(NULL_KEY_OR_VALUE)
                return
            found = None if key is None else get(key)
            if found is not None:
                forward(key, join(key, value, found[0]), timestamp)
            elif keeps_unmatched:
                forward(key, join(key, value, None), timestamp)

        return receive


class StreamGlobalTableJoin(Node):
    """Looks up the key that a function of the program extracts from key and value."""

    needs_task = True

    def __init__(
        self,
        name: str,
        store: str,
        key_selector: Callable[[Any, Any], Any],
        joiner: Callable[..., Any],
        *,
        with_key: bool,
        keeps_unmatched: bool,
    ) -> None:
        super().__init__(name)
        self.global_store = store
        self.global_stores = (store,)
        self.key_selector = key_selector
        self.joiner = joiner
        self.with_key = with_key
        self.keeps_unmatched = self.joins_null_keys = keeps_unmatched

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        get: Getter = context.store(self.global_store).get
        select, keeps_unmatched = self.key_selector, self.keeps_unmatched
        join = keyed(self.joiner, with_key=self.with_key)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            selected = None if value is None else select(key, value)
            if value is None or (selected is None and not keeps_unmatched):
                context.drop(NULL_KEY_OR_VALUE)
                return
            found = None if selected is None else get(selected)
            if found is not None:
                forward(key, join(key, value, found[0]), timestamp)
            elif keeps_unmatched:
                forward(key, join(key, value, None), timestamp)

        return receive
