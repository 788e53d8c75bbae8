"""Joins of two tables by a foreign key, which a function extracts from the values of the left table (KIP-213).

    left table -> SendSubscription ~~ topic ~~> Subscribe ~~ topic ~~> ResolveResponse -> the joined table
                                      right table -> Notify ~~~~^

The left table's task sends each row's subscription to the task of the right row, which responds with the right row's
value at once and whenever it changes. The left table's task then joins the two. If the left row has changed in the
meantime, the response has the hash of another value and is dropped: a response for the new value will follow.
"""

from collections.abc import Callable
from typing import Any, Final

from kaspar.streams.operators.joiners import keyed
from kaspar.streams.operators.subscriptions import Instruction, Response, Subscription, hash_of, prefix_of
from kaspar.streams.operators.tables import TableNode
from kaspar.streams.serdes import Serde
from kaspar.streams.serdes.plain import RAW
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver

NULL_FOREIGN_KEY: Final = "null-foreign-key"


class SendSubscription(Node):
    """Sends subscriptions (SubscriptionSendProcessorSupplier). A left join also keeps a row without a foreign key: it
    requests a response, which has no right value (KIP-962)."""

    def __init__(
        self,
        name: str,
        foreign_key: Callable[..., Any],
        *,
        with_key: bool,
        is_left_join: bool,
        foreign_key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> None:
        super().__init__(name)
        self.foreign_key = foreign_key
        self.with_key = with_key
        self.is_left_join = is_left_join
        self.foreign_key_serde = foreign_key_serde
        self.value_serde = value_serde

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        settings, topic = context.settings, f"{context.application_id}-{self.name}"
        write_key = settings.key_serde(self.foreign_key_serde).serialize
        write_value = settings.value_serde(self.value_serde).serialize
        foreign_key, with_key, is_left_join = self.foreign_key, self.with_key, self.is_left_join

        def select(key: Any, value: Any) -> Any:
            if value is None:
                return None
            return foreign_key(key, value) if with_key else foreign_key(value)

        def receive(key: Any, change: Any, timestamp: int) -> None:
            new, old = change
            if new is None and old is None:
                return
            to, last = select(key, new), select(key, old)
            hashed = hash_of(write_value(f"{topic}-vh", new))

            def send(foreign: Any, instruction: Instruction) -> None:
                forward(foreign, Subscription(key, hashed, instruction), timestamp)

            has_moved = last is not None and (
                to is None or write_key(f"{topic}-fk", to) != write_key(f"{topic}-fk", last)
            )
            if is_left_join:
                if has_moved:
                    send(last, Instruction.DELETE)
                send(to, Instruction.SUBSCRIBE_AND_RESPOND)
            elif to is None:
                if new is not None:
                    context.drop(NULL_FOREIGN_KEY)
                if last is not None:
                    send(last, Instruction.DELETE_AND_RESPOND)
            elif has_moved:
                send(last, Instruction.DELETE)
                send(to, Instruction.SUBSCRIBE_AND_RESPOND)
            else:
                send(to, Instruction.SUBSCRIBE)

        return receive


class Subscribe(Node):
    """Stores the subscriptions to the right table's rows and responds to them (SubscriptionReceiveProcessorSupplier,
    SubscriptionJoinProcessorSupplier). The store maps the keys of both rows to the hash of the subscription."""

    def __init__(
        self,
        name: str,
        table: TableNode,
        store: str,
        *,
        key_serde: Serde[Any] | None,
        foreign_key_serde: Serde[Any] | None,
    ) -> None:
        super().__init__(name)
        self.table = table
        self.store = store
        self.key_serde = key_serde
        self.foreign_key_serde = foreign_key_serde

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        settings, topic = context.settings, f"{context.application_id}-{self.store}"
        write_key = settings.key_serde(self.key_serde).serialize
        write_foreign_key = settings.key_serde(self.foreign_key_serde).serialize
        get, put = self.table.getter(context), context.store(self.store).put

        def keep(foreign_key: Any, subscription: Subscription) -> None:
            deletes = subscription.instruction in (Instruction.DELETE, Instruction.DELETE_AND_RESPOND)
            store_key = prefix_of(write_foreign_key(f"{topic}-fk", foreign_key) or b"")
            store_key += write_key(f"{topic}-pk", subscription.primary_key) or b""
            put(store_key, None if deletes else subscription.hash)

        def receive(foreign_key: Any, subscription: Subscription, timestamp: int) -> None:
            instruction = subscription.instruction
            if foreign_key is not None:
                keep(foreign_key, subscription)
            elif instruction is not Instruction.SUBSCRIBE_AND_RESPOND:
                context.drop(NULL_FOREIGN_KEY)
                return
            if instruction is Instruction.DELETE:
                return
            found = None if foreign_key is None else get(foreign_key)
            if found is None and instruction is Instruction.SUBSCRIBE:
                return
            value = None if found is None or instruction is Instruction.DELETE_AND_RESPOND else found[0]
            time = timestamp if found is None else max(timestamp, found[1])
            forward(subscription.primary_key, Response(subscription.hash, value), time)

        return receive


class Notify(Node):
    """Sends changes of a right row to all left rows that refer to it (ForeignTableJoinProcessorSupplier)."""

    def __init__(
        self, name: str, store: str, *, key_serde: Serde[Any] | None, foreign_key_serde: Serde[Any] | None
    ) -> None:
        super().__init__(name)
        self.store = store
        self.key_serde = key_serde
        self.foreign_key_serde = foreign_key_serde

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        settings, topic = context.settings, f"{context.application_id}-{self.store}"
        read_key = settings.key_serde(self.key_serde).deserialize
        write_foreign_key = settings.key_serde(self.foreign_key_serde).serialize
        prefix_scan = context.store(self.store).prefix_scan

        def receive(foreign_key: Any, change: Any, timestamp: int) -> None:
            if foreign_key is None:
                context.drop("null-key")
                return
            prefix = prefix_of(write_foreign_key(f"{topic}-fk", foreign_key) or b"")
            for store_key, hashed in prefix_scan(prefix, RAW):
                key = read_key(f"{topic}-pk", store_key[len(prefix) :])
                forward(key, Response(hashed, change[0]), timestamp)

        return receive


class ResolveResponse(Node):
    """Joins a response with the left row, unless the response is outdated (ResponseJoinProcessorSupplier)."""

    def __init__(
        self,
        name: str,
        table: TableNode,
        joiner: Callable[..., Any],
        *,
        with_key: bool,
        is_left_join: bool,
        value_serde: Serde[Any] | None,
        hashed_as: str,
    ) -> None:
        super().__init__(name)
        self.table = table
        self.joiner = joiner
        self.with_key = with_key
        self.is_left_join = is_left_join
        self.value_serde = value_serde
        self.hashed_as = hashed_as
        """The name of the step that sends subscriptions: serdes get the same topic for both hashes."""

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        topic = f"{context.application_id}-{self.hashed_as}-vh"
        write_value = context.settings.value_serde(self.value_serde).serialize
        get, is_left_join = self.table.getter(context), self.is_left_join
        join = keyed(self.joiner, with_key=self.with_key)

        def receive(key: Any, response: Response, timestamp: int) -> None:
            found = get(key)
            value = None if found is None else found[0]
            if response.hash != hash_of(write_value(topic, value)):
                return
            other = response.value
            is_empty = value is None or (other is None and not is_left_join)
            forward(key, None if is_empty else join(key, value, other), timestamp)

        return receive
