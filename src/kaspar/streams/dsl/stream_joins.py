"""KStream.join, left_join and outer_join: with a stream, a table or a global table (Kafka's KStreamImplJoin)."""

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias

from kaspar.streams.dsl.handles import GlobalKTable, Stream, StreamHandle, TableHandle
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.stream_joins import JoinWindow, StreamJoin
from kaspar.streams.operators.stream_table_joins import StreamGlobalTableJoin, StreamTableJoin
from kaspar.streams.operators.waiting_records import WAITING_RECORDS, EitherSide
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.kinds import WINDOW
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.node import PassThrough
from kaspar.streams.windows import JoinWindows

Kind: TypeAlias = Literal["inner", "left", "outer"]


def join(
    stream: Stream,
    other: StreamHandle | TableHandle | GlobalKTable,
    joiner: Callable[..., Any],
    windows: JoinWindows | None = None,
    *,
    kind: Kind,
    with_key: bool = False,
    key_serde: Serde[Any] | None = None,
    value_serde: Serde[Any] | None = None,
    other_value_serde: Serde[Any] | None = None,
    store_name: str | None = None,
    key_selector: Callable[[Any, Any], Any] | None = None,
    name: str | None = None,
) -> Stream:
    if not callable(joiner):
        raise TopologyError(f"A join needs a function of both values as joiner, not {joiner!r}.")
    stream = stream.with_serdes(key_serde, value_serde)
    if isinstance(other, StreamHandle):
        _refuse("two streams", key_selector=key_selector)
        other = other.with_serdes(key_serde, other_value_serde)
        return _StreamStreamJoin(stream, other, joiner, windows, kind, with_key, store_name, name).build()
    with_what = "a stream with a table" if isinstance(other, TableHandle) else "a stream with a global table"
    if not isinstance(other, TableHandle | GlobalKTable):
        raise TopologyError(f"A stream is joined with a stream, a table or a global table, not with {other!r}.")
    _refuse(with_what, windows=windows, store_name=store_name, other_value_serde=other_value_serde)
    if kind == "outer":
        raise TopologyError(
            f"An outer join of {with_what} is not supported, since changes of the table emit nothing: use left_join()."
        )
    if isinstance(other, TableHandle):
        _refuse(with_what, key_selector=key_selector)
        return _join_table(stream, other, joiner, kind, with_key, name)
    return _join_global_table(stream, other, joiner, kind, with_key, key_selector, name)


class _StreamStreamJoin(Generic[Stream]):
    """Builds the steps of one join. The names of steps and stores are Kafka's."""

    def __init__(
        self,
        stream: Stream,
        other: StreamHandle,
        joiner: Callable[..., Any],
        windows: JoinWindows | None,
        kind: Kind,
        with_key: bool,
        store_name: str | None,
        name: str | None,
    ) -> None:
        if not isinstance(windows, JoinWindows):
            raise TopologyError(
                "A join of two streams needs windows, such as JoinWindows.of_time_difference(timedelta(minutes=5)), "
                f"not {windows!r}."
            )
        check_same_builder(stream, other)
        self._stream = stream
        self._sides: tuple[StreamHandle, StreamHandle] = stream, other
        self._graph = stream.graph
        self._joiner = joiner
        self._windows = windows
        self._keeps_left, self._keeps_right = kind in ("left", "outer"), kind == "outer"
        self._with_key = with_key
        self._store_name = store_name
        self._name = name
        self._key_serde = stream.key_serde or other.key_serde

    def build(self) -> Stream:
        graph, (left, right) = self._graph, self._sides
        left = repartitioned(left, self._name and f"{self._name}-left")
        right = repartitioned(right, self._name and f"{self._name}-right")
        windowed = self._step("-this-windowed", "KSTREAM-WINDOWED-"), self._step("-other-windowed", "KSTREAM-WINDOWED-")
        suffixes = (
            "-outer-this-join" if self._keeps_right else "-this-join",
            "-outer-other-join" if self._keeps_left else "-other-join",
        )
        this_join = graph.new_name("KSTREAM-OUTERTHIS-" if self._keeps_right else "KSTREAM-JOINTHIS-")
        other_join = graph.new_name("KSTREAM-OUTEROTHER-" if self._keeps_left else "KSTREAM-JOINOTHER-")
        merged = self._step("-merge", "KSTREAM-MERGE-")
        stores = [
            self._window_store(made, suffix, side)
            for made, suffix, side in zip((this_join, other_join), suffixes, self._sides, strict=True)
        ]
        waiting = self._waiting_store(this_join)
        joins: list[StreamJoin] = []
        for number, (made, suffix, side) in enumerate(
            zip((this_join, other_join), suffixes, (left, right), strict=True)
        ):
            window = JoinWindow(windowed[number], stores[number].name)
            window.input_serdes = side.key_serde, side.value_serde
            graph.add(window, [side.node])
            graph.add_store(stores[number], [window])
            step = StreamJoin(
                made if self._name is None else self._name + suffix,
                self._joiner,
                self._windows,
                is_left=number == 0,
                with_key=self._with_key,
                keeps_unmatched=(self._keeps_left, self._keeps_right)[number],
                other_store=stores[1 - number].name,
                waiting_store=None if waiting is None else waiting.name,
                time_name=f"{merged}.time",
            )
            joins.append(graph.add(step, [window]))
        if waiting is not None:
            graph.add_store(waiting, joins)
        node = graph.add(PassThrough(merged), joins)
        return self._stream.at(node, self._key_serde)

    def _step(self, suffix: str, prefix: str) -> str:
        return self._graph.new_name(prefix, self._name, suffix if self._name is not None else "")

    def _window_store(self, made: str, suffix: str, side: StreamHandle) -> StoreSpec:
        return StoreSpec(
            name=f"{made if self._store_name is None else self._store_name + suffix}-store",
            kind=WINDOW,
            key_serde=self._key_serde,
            value_serde=side.value_serde,
            retention_ms=self._windows.retention_ms,
            window_size_ms=self._windows.size_ms,
            retain_duplicates=True,
        )

    def _waiting_store(self, this_join: str) -> StoreSpec | None:
        if not self._keeps_left:
            return None
        left, right = self._sides
        if self._store_name is None:
            name = f"KSTREAM-OUTERSHARED-{this_join.rpartition('-')[2]}"
        else:
            name = self._store_name + ("-outer-shared-join" if self._keeps_right else "-left-shared-join")
        return StoreSpec(
            name=f"{name}-store",
            kind=WAITING_RECORDS,
            key_serde=self._key_serde,
            value_serde=EitherSide(left.value_serde, right.value_serde),
        )


def _join_table(
    stream: Stream, table: TableHandle, joiner: Callable[..., Any], kind: Kind, with_key: bool, name: str | None
) -> Stream:
    check_same_builder(stream, table)
    graph, prefix = stream.graph, "KSTREAM-LEFTJOIN-" if kind == "left" else "KSTREAM-JOIN-"
    if stream.key_serde is None:
        stream = stream.with_serdes(table.key_serde, None)
    stream = repartitioned(stream, name)
    node = StreamTableJoin(
        graph.new_name(prefix, name), table.node, joiner, with_key=with_key, keeps_unmatched=kind == "left"
    )
    node.input_serdes = stream.key_serde, stream.value_serde
    graph.add(node, [stream.node])
    graph.connect(node, *table.node.getter_stores())
    return stream.at(node, stream.key_serde)


def _join_global_table(
    stream: Stream,
    table: GlobalKTable,
    joiner: Callable[..., Any],
    kind: Kind,
    with_key: bool,
    key_selector: Callable[[Any, Any], Any] | None,
    name: str | None,
) -> Stream:
    if key_selector is None or not callable(key_selector):
        raise TopologyError(
            "A join with a global table needs key_selector, a function of key and value that returns the table's key."
        )
    if table.store not in stream.graph.global_tables:
        raise TopologyError(f"The global table {table.topic} belongs to another StreamsBuilder.")
    prefix = "KSTREAM-LEFTJOIN-" if kind == "left" else "KSTREAM-JOIN-"
    node = StreamGlobalTableJoin(
        stream.graph.new_name(prefix, name),
        table.store,
        key_selector,
        joiner,
        with_key=with_key,
        keeps_unmatched=kind == "left",
    )
    node.input_serdes = stream.key_serde, stream.value_serde
    stream.graph.add(node, [stream.node])
    return stream.at(node, stream.key_serde, needs_repartition=stream.needs_repartition)


def repartitioned(stream: Stream, name: str | None) -> Stream:
    """The stream with each record at the task of its key. Several joins of one stream share its repartitioning."""
    base_name = name or stream.node.name
    known = stream.graph.nodes.get(f"{base_name}-repartition")
    if stream.needs_repartition and isinstance(known, Repartition) and known.parents == [stream.node]:
        if (known.key_serde, known.value_serde) == (stream.key_serde, stream.value_serde):
            return stream.at(known, known.key_serde, known.value_serde)
        raise TopologyError(
            f"Two joins of the stream {stream.node.name} have different serdes: give each join a name with name=."
        )
    return stream.repartitioned(base_name)


def check_same_builder(one: StreamHandle, other: StreamHandle | TableHandle) -> None:
    if one.graph is not other.graph:
        raise TopologyError("Both sides of a join must come from the same StreamsBuilder.")


def _refuse(joined: str, **options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise TopologyError(f"A join of {joined} takes no {option}.")
