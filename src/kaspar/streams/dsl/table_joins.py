"""KTable.join, left_join and outer_join: by key, or by a foreign key in the values (Kafka's KTableImpl.doJoin and
doJoinOnForeignKey)."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from kaspar.streams.dsl.handles import TableHandle
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.foreign_keys import Notify, ResolveResponse, SendSubscription, Subscribe
from kaspar.streams.operators.subscriptions import ResponseSerde, SubscriptionSerde
from kaspar.streams.operators.table_joins import TableJoin, TableJoinSide
from kaspar.streams.operators.tables import TableSource
from kaspar.streams.operators.windowed_keys import partitioner_of
from kaspar.streams.serdes import Serde, raw
from kaspar.streams.stores.kinds import KEY_VALUE
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition

Kind: TypeAlias = Literal["inner", "left", "outer"]
Table = TypeVar("Table", bound=TableHandle)


def join(
    table: Table,
    other: TableHandle,
    joiner: Callable[..., Any],
    store: str | None,
    *,
    kind: Kind,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    name: str | None = None,
    with_key: bool = False,
) -> Table:
    _check(table, other, joiner)
    graph, (left, right) = table.graph, (table.node, other.node)
    if kind != "inner":
        left.send_old_values(force=True)
    if kind == "outer":
        right.send_old_values(force=True)
    needs_left, needs_right = kind != "outer", kind == "inner"
    left_side = TableJoinSide(
        graph.new_name("KTABLE-JOINTHIS-", name, _suffix(name, "-join-this")),
        right,
        joiner,
        is_left=True,
        with_key=with_key,
        needs_this=needs_left,
        needs_other=needs_right,
    )
    right_side = TableJoinSide(
        graph.new_name("KTABLE-JOINOTHER-", name, _suffix(name, "-join-other")),
        left,
        joiner,
        is_left=False,
        with_key=with_key,
        needs_this=needs_right,
        needs_other=needs_left,
    )
    merged = graph.new_name("KTABLE-MERGE-", name)
    node = TableJoin(merged, left, right, (left_side, right_side), store)
    for side, parent, looked_up in ((left_side, left, right), (right_side, right, left)):
        graph.add(side, [parent])
        graph.connect(side, *looked_up.getter_stores())
    graph.add(node, [left_side, right_side])
    given = Materialized(store, key_serde, value_serde).or_serdes(table.key_serde or other.key_serde)
    if store is not None:
        graph.add_store(given.key_value_store(graph, ""), [node])
    return table.at(node, given.key_serde, value_serde)


def foreign_key_join(
    table: Table,
    other: TableHandle,
    foreign_key: Callable[..., Any],
    joiner: Callable[..., Any],
    store: str | None,
    *,
    kind: Kind,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    name: str | None = None,
    with_key: bool = False,
    foreign_key_with_key: bool = False,
) -> Table:
    """A join by `foreign_key(value)`, or by `foreign_key(key, value)` with `foreign_key_with_key` (KIP-1104)."""
    _check(table, other, joiner)
    if not callable(foreign_key):
        raise TopologyError(
            f"A foreign-key join needs foreign_key, a function that finds the other table's key in a value, "
            f"not {foreign_key!r}."
        )
    for side in (table, other):
        if partitioner_of(side.key_serde) is not None:
            raise TopologyError(
                "A windowed table cannot be used in a foreign-key join, because its rows are partitioned by key, "
                "not by window. Convert it to a table with plain keys: to_stream(selector).to_table()."
            )
    result = _ForeignKeyJoin(table, other, name).build(
        foreign_key, joiner, is_left_join=kind == "left", with_key=with_key, foreign_key_with_key=foreign_key_with_key
    )
    given = Materialized(store, key_serde, value_serde).or_serdes(table.key_serde)
    return _as_table(table, result, given, name)


class _ForeignKeyJoin:
    """Builds the steps of one join: see operators/foreign_keys.py. Names are Kafka's."""

    def __init__(self, left: TableHandle, right: TableHandle, name: str | None) -> None:
        self._graph = left.graph
        self._left = left
        self._right = right
        self._name = name

    def build(
        self,
        foreign_key: Callable[..., Any],
        joiner: Callable[..., Any],
        *,
        is_left_join: bool,
        with_key: bool,
        foreign_key_with_key: bool,
    ) -> ResolveResponse:
        """Returns the step that emits joined values."""
        graph, left = self._graph, self._left
        left.node.send_old_values(force=True)
        self._right.node.send_old_values(force=True)
        registration = self._step("-subscription-registration", "SUBSCRIPTION-REGISTRATION-")
        send = SendSubscription(
            f"{registration}-processor",
            foreign_key,
            with_key=foreign_key_with_key,
            is_left_join=is_left_join,
            foreign_key_serde=self._right.key_serde,
            value_serde=left.value_serde,
        )
        graph.add(send, [left.node])
        responses = self._right_side(send, f"{registration}-topic")
        resolve = ResolveResponse(
            self._step("-subscription-response-resolver", "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"),
            left.node,
            joiner,
            with_key=with_key,
            is_left_join=is_left_join,
            value_serde=left.value_serde,
            hashed_as=send.name,
        )
        graph.add(resolve, [responses])
        graph.connect(resolve, *left.node.getter_stores())
        return resolve

    def _right_side(self, send: SendSubscription, topic: str) -> Repartition:
        """Add the steps of the right table, from the topic of subscriptions to the topic of responses."""
        graph, left, right = self._graph, self._left, self._right
        registrations = Repartition(topic, key_serde=right.key_serde, value_serde=SubscriptionSerde(left.key_serde))
        graph.add(registrations, [send])
        store = self._step("-subscription-store", "SUBSCRIPTION-STATE-STORE-")
        serdes = {"key_serde": left.key_serde, "foreign_key_serde": right.key_serde}
        subscribe = Subscribe(
            self._step("-subscription-receive", "SUBSCRIPTION-PROCESSOR-"), right.node, store, **serdes
        )
        notify = Notify(self._step("-foreign-join-subscription", "SUBSCRIPTION-PROCESSOR-"), store, **serdes)
        graph.add(subscribe, [registrations])
        graph.add(notify, [right.node])
        graph.add_store(StoreSpec(store, KEY_VALUE, raw(), raw()), [subscribe, notify])
        graph.connect(subscribe, *right.node.getter_stores())
        responses = Repartition(
            f"{self._step('-subscription-response', 'SUBSCRIPTION-RESPONSE-')}-topic",
            key_serde=left.key_serde,
            value_serde=ResponseSerde(right.value_serde),
        )
        return graph.add(responses, [subscribe, notify])

    def _step(self, suffix: str, prefix: str) -> str:
        return self._graph.new_name(f"KTABLE-FK-JOIN-{prefix}", self._name, _suffix(self._name, suffix))


def _as_table(left: Table, step: ResolveResponse, given: Materialized, name: str | None) -> Table:
    """The joined values as a table. It has a store if the program names one, or if a later step needs it."""
    graph = left.graph
    spec = given.key_value_store(graph, "KTABLE-FK-JOIN-OUTPUT-")
    result = TableSource(
        graph.new_name("KTABLE-FK-JOIN-OUTPUT-", name, _suffix(name, "-result")),
        spec.name,
        lambda node: graph.add_store(spec, [node]),
        stored=given.name is not None,
    )
    graph.add(result, [step])
    return left.at(result, given.key_serde, given.value_serde)


def _check(table: TableHandle, other: TableHandle, joiner: Callable[..., Any]) -> None:
    if not isinstance(other, TableHandle):
        raise TopologyError(f"A table is joined with a table, not with {other!r}.")
    if table.graph is not other.graph:
        raise TopologyError("Both sides of a join must come from the same StreamsBuilder.")
    if not callable(joiner):
        raise TopologyError(f"A join needs a function of both values as joiner, not {joiner!r}.")


def _suffix(name: str | None, suffix: str) -> str:
    return "" if name is None else suffix
