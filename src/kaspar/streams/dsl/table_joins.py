"""KTable.join, left_join and outer_join: by key, or by a foreign key in the values (Kafka's KTableImpl.doJoin and
doJoinOnForeignKey)."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from kaspar.streams.dsl.ktable import KTable
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.foreign_keys import Notify, ResolveResponse, SendSubscription, Subscribe
from kaspar.streams.operators.subscriptions import ResponseSerde, SubscriptionSerde
from kaspar.streams.operators.table_joins import TableJoin, TableJoinSide
from kaspar.streams.operators.tables import TableSource
from kaspar.streams.serdes import Serde, raw
from kaspar.streams.stores.kinds import KEY_VALUE
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition

Kind: TypeAlias = Literal["inner", "left", "outer"]


def join(
    table: KTable,
    other: KTable,
    joiner: Callable[..., Any],
    store: str | None,
    *,
    kind: Kind,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    name: str | None = None,
    with_key: bool = False,
) -> KTable:
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
    return KTable(graph, node, given.key_serde, value_serde)


def foreign_key_join(
    table: KTable,
    other: KTable,
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
) -> KTable:
    """`foreign_key(value)`, or `foreign_key(key, value)` with `foreign_key_with_key` (KIP-1104)."""
    _check(table, other, joiner)
    if not callable(foreign_key):
        raise TopologyError(
            f"A foreign-key join needs foreign_key, a function that finds the other table's key in a value, "
            f"not {foreign_key!r}."
        )
    graph, is_left_join = table.graph, kind == "left"
    table.node.send_old_values(force=True)
    other.node.send_old_values(force=True)

    def step(suffix: str, prefix: str) -> str:
        return graph.new_name(f"KTABLE-FK-JOIN-{prefix}-", name, _suffix(name, suffix))

    registration = step("-subscription-registration", "SUBSCRIPTION-REGISTRATION")
    key_serdes = {"key_serde": table.key_serde, "foreign_key_serde": other.key_serde}
    send = SendSubscription(
        f"{registration}-processor",
        foreign_key,
        with_key=foreign_key_with_key,
        is_left_join=is_left_join,
        foreign_key_serde=other.key_serde,
        value_serde=table.value_serde,
    )
    graph.add(send, [table.node])
    registrations = Repartition(
        f"{registration}-topic", key_serde=other.key_serde, value_serde=SubscriptionSerde(table.key_serde)
    )
    graph.add(registrations, [send])

    subscriptions = StoreSpec(
        name=step("-subscription-store", "SUBSCRIPTION-STATE-STORE"),
        kind=KEY_VALUE,
        key_serde=raw(),
        value_serde=raw(),
    )
    subscribe = Subscribe(
        step("-subscription-receive", "SUBSCRIPTION-PROCESSOR"), other.node, subscriptions.name, **key_serdes
    )
    graph.add(subscribe, [registrations])
    notify = Notify(step("-foreign-join-subscription", "SUBSCRIPTION-PROCESSOR"), subscriptions.name, **key_serdes)
    graph.add(notify, [other.node])
    graph.add_store(subscriptions, [subscribe, notify])
    graph.connect(subscribe, *other.node.getter_stores())

    responses = Repartition(
        f"{step('-subscription-response', 'SUBSCRIPTION-RESPONSE')}-topic",
        key_serde=table.key_serde,
        value_serde=ResponseSerde(other.value_serde),
    )
    graph.add(responses, [subscribe, notify])
    resolve = ResolveResponse(
        step("-subscription-response-resolver", "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR"),
        table.node,
        joiner,
        with_key=with_key,
        is_left_join=is_left_join,
        value_serde=table.value_serde,
        hashed_as=send.name,
    )
    graph.add(resolve, [responses])
    graph.connect(resolve, *table.node.getter_stores())

    given = Materialized(store, key_serde, value_serde).or_serdes(table.key_serde)
    spec = given.key_value_store(graph, "KTABLE-FK-JOIN-OUTPUT-")
    result = TableSource(
        step("-result", "OUTPUT"),
        spec.name,
        lambda node: _void(graph.add_store(spec, [node])),
        stored=store is not None,
    )
    graph.add(result, [resolve])
    return KTable(graph, result, given.key_serde, value_serde)


def _check(table: KTable, other: KTable, joiner: Callable[..., Any]) -> None:
    if not isinstance(other, KTable):
        raise TopologyError(f"A table is joined with a table, not with {other!r}.")
    if table.graph is not other.graph:
        raise TopologyError("Both sides of a join must come from the same StreamsBuilder.")
    if not callable(joiner):
        raise TopologyError(f"A join needs a function of both values as joiner, not {joiner!r}.")


def _suffix(name: str | None, suffix: str) -> str:
    return "" if name is None else suffix


def _void(value: object) -> None:
    """For a callback whose result is of no interest."""
