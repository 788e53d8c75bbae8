"""Executes a sub-topology: the map side, which processes records where they are read, and a task, which has the state.

Both are created for a micro-batch (or for the life of a test driver) from a SubTopology and the program's settings.
They take rows and call receivers; their results are written to the given outputs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kaspar.streams.errors import NEVER_SKIPPED, ProcessingError, described
from kaspar.streams.topology.any_value import AnyValue
from kaspar.streams.topology.context import Clock, Headers, OnError, Outputs, TaskContext, TaskSettings
from kaspar.streams.topology.dead_letters import dead_letter
from kaspar.streams.topology.endpoints import RawReceiver, Repartition, Source
from kaspar.streams.topology.node import Node, Receiver, fan_out
from kaspar.streams.topology.plan import Port, SubTopology
from kaspar.streams.topology.punctuation import Punctuations

ShuffledOutput: TypeAlias = tuple[int, bytes | None, bytes | None, int, Headers | None, int | None]
"""Port number, key, value, timestamp, headers and partition; None means the partition of the key's hash."""


class Row(NamedTuple):
    """A record that a task processes."""

    port: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    topic: str
    partition: int
    offset: int
    headers: Headers | None = None


class MapSide:
    """The steps before the shuffle. `shuffle` receives the records for tasks."""

    def __init__(
        self,
        plan: SubTopology,
        settings: TaskSettings,
        outputs: Outputs,
        shuffle: Callable[[ShuffledOutput], object],
    ) -> None:
        self.context = TaskContext(settings, -1, {}, outputs, {})
        self._plan = plan
        self._shuffle = shuffle
        self._receivers = _bind(plan, self.context, plan.nodes, self._crossing, task_side=False)
        self._sources: dict[str, RawReceiver] = {}

    def receive(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        receive = self._sources.get(topic) or self._source(topic)
        context = self.context
        context.topic, context.partition, context.offset, context.headers = topic, partition, offset, headers
        context.raw_key, context.raw_value = key, value
        try:
            receive(key, value, timestamp)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            raise failure(context, problem) from problem

    def _source(self, topic: str) -> RawReceiver:
        """The receiver of a source. Its children receive a record in their order, except that all children of the task
        side that share a row receive it with the first of them."""
        source = self._plan.source_of(topic, self.context.application_id)
        port = self._plan.port(source, source)
        if port is not None and not any(child.name in self._receivers for child in source.children):
            self._sources[topic] = self._passing_bytes(port)
            return self._sources[topic]
        receivers: list[Receiver] = []
        for child in source.children:
            own, crossing = self._receivers.get(child.name), self._plan.port(source, child)
            if own is not None:
                receivers.append(own)
            elif crossing is not None:
                receivers.append(self._crossing(crossing))
            elif port is not None:
                receivers.append(self._passing_raw(port))
                port = None
        self._sources[topic] = source.bytes_receiver(self.context, fan_out(receivers))
        return self._sources[topic]

    def _passing_bytes(self, port: Port) -> RawReceiver:
        shuffle, context, number = self._shuffle, self.context, port.number

        def receive(key: bytes | None, value: bytes | None, timestamp: int) -> None:
            shuffle((number, key, value, timestamp, context.headers, None))

        return receive

    def _passing_raw(self, port: Port) -> Receiver:
        """Shuffle the original bytes of a record, for a source that also has children on the map side."""
        shuffle, context, number = self._shuffle, self.context, port.number

        def receive(key: Any, value: Any, timestamp: int) -> None:
            shuffle((number, context.raw_key, context.raw_value, timestamp, context.headers, None))

        return receive

    def _crossing(self, port: Port) -> Receiver:
        shuffle, context, number = self._shuffle, self.context, port.number
        write_key = context.settings.key_serde(port.key_serde).serialize
        write_value = (port.value_serde or AnyValue()).serialize
        keeps_raw = context.settings.keeps_raw_records

        def receive(key: Any, value: Any, timestamp: int) -> None:
            topic, headers = context.topic, _with_raw_record(context) if keeps_raw else context.headers
            shuffle((number, write_key(topic, key), write_value(topic, value), timestamp, headers, None))

        if not isinstance(port.parent, Repartition) or port.parent.partitioner is None:
            return receive
        name, partitioner = port.parent.name, context.settings.resolved(port.parent.partitioner)

        def receive_partitioned(key: Any, value: Any, timestamp: int) -> None:
            partition = partitioner(name, key, value, context.outputs.partition_count(name))
            raw_key, raw_value = write_key(context.topic, key), write_value(context.topic, value)
            headers = _with_raw_record(context) if keeps_raw else context.headers
            shuffle((number, raw_key, raw_value, timestamp, headers, partition))

        return receive_partitioned


class Task:
    """The steps after the shuffle for one partition, with its stores."""

    def __init__(
        self,
        plan: SubTopology,
        settings: TaskSettings,
        partition: int,
        stores: Mapping[str, Any],
        outputs: Outputs,
        clocks: dict[str, Clock],
        *,
        wall_clock_ms: int = 0,
    ) -> None:
        self.context = TaskContext(settings, partition, stores, outputs, clocks, wall_clock_ms=wall_clock_ms)
        self.context.global_stores = frozenset(table.store.name for table in plan.global_tables)
        self.punctuations = self.context.punctuations = Punctuations(self.context)
        receivers = _bind(plan, self.context, plan.nodes, None, task_side=True)
        self._ports = [self._receiver(port, receivers) for port in plan.ports]

    def _receiver(self, port: Port, receivers: Mapping[str, Receiver]) -> RawReceiver:
        node, context = port.node, self.context
        if isinstance(node, Source):
            children = [receivers[child.name] for child in node.children if child.name in receivers]
            return node.bytes_receiver(context, fan_out(children))
        forward = receivers[node.name]
        read_key = context.settings.key_serde(port.key_serde).deserialize
        read_value = (port.value_serde or AnyValue()).deserialize

        def receive(key: bytes | None, value: bytes | None, timestamp: int) -> None:
            topic = context.topic
            forward(read_key(topic, key), read_value(topic, value), timestamp)

        def receive_with_raw_record(key: bytes | None, value: bytes | None, timestamp: int) -> None:
            *headers, (_, context.raw_key), (_, context.raw_value) = context.headers or ()
            context.headers = headers or None
            receive(key, value, timestamp)

        return receive_with_raw_record if context.settings.keeps_raw_records else receive

    def process(self, rows: Iterable[Row]) -> None:
        """Process rows in this order. Raises ProcessingError if the program fails for one of them."""
        context, ports, punctuations = self.context, self._ports, self.punctuations
        time = context.stream_time
        try:
            for port, key, value, timestamp, topic, partition, offset, headers in rows:
                context.topic, context.partition, context.offset, context.headers = topic, partition, offset, headers
                context.raw_key, context.raw_value = key, value
                if timestamp > time.now:
                    time.now = timestamp
                ports[port](key, value, timestamp)
                if punctuations.next_stream_time <= time.now:
                    punctuations.stream_time_advanced(time.now)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            raise failure(context, problem) from problem

    def close(self) -> None:
        """Close the processors and flush the stores, after the last record."""
        for close in self.context.closing:
            close()
        for store in self.context.stores.values():
            if hasattr(store, "flush"):
                store.flush()

    def punctuate(self) -> None:
        """Call the wall-clock punctuators that are due."""
        self.punctuations.wall_clock_advanced(self.context.wall_clock_ms)


def _with_raw_record(context: TaskContext) -> Headers:
    """The headers, followed by the original key and value, which pass the shuffle in this way."""
    return [*(context.headers or ()), ("key", context.raw_key), ("value", context.raw_value)]


def failure(context: TaskContext, problem: Exception) -> ProcessingError:
    """The error for a function of the program that raised an exception."""
    return ProcessingError(
        f"A function of the program raised {described(problem)} (topic {context.topic}, partition {context.partition}, "
        f"offset {context.offset}). To skip such records set processing.exception.handler = continue."
    )


def _bind(
    plan: SubTopology,
    context: TaskContext,
    nodes: tuple[Node, ...],
    crossing: Callable[[Port], Receiver] | None,
    *,
    task_side: bool,
) -> dict[str, Receiver]:
    """The receivers of all steps of one side except for sources, by name. `crossing` creates the receiver of a port."""
    receivers: dict[str, Receiver] = {}
    for node in reversed(nodes):
        if (node.name in plan.task_side) is not task_side or isinstance(node, Source):
            continue
        children = []
        for child in node.children:
            port = None if task_side else plan.port(node, child)
            children.append(receivers[child.name] if port is None or crossing is None else crossing(port))
        receiver = node.bind(context, children)
        if context.settings.on_processing_error is OnError.CONTINUE:
            receiver = _guarded(context, receiver)
        receivers[node.name] = receiver
    return receivers


def _guarded(context: TaskContext, receive: Receiver) -> Receiver:
    """A receiver that skips records for which a step raises. Later steps have their own guards, so that their errors do
    not reach this one (KIP-1033)."""

    def guarded(key: Any, value: Any, timestamp: int) -> None:
        try:
            receive(key, value, timestamp)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            context.drop("processing")
            dead_letter(context, context.raw_key, context.raw_value, timestamp, problem)

    return guarded
