"""The Processor API: custom processing steps (Kafka's Processor, ProcessorContext and FixedKeyProcessor).

    class Alarm(Processor):
        def init(self, context):
            self.last = context.store("last")
            context.schedule(60_000, PunctuationType.WALL_CLOCK_TIME, self.look)
        def process(self, record): ...

A processor is created and initialised for each micro-batch and partition, wherever Spark runs it. Data that must
outlive a batch belongs in a store; schedules continue by themselves.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kaspar.streams.errors import StreamsError
from kaspar.streams.topology.context import Cancellable, Headers, PunctuationType, TaskContext
from kaspar.streams.topology.node import Node, Receiver, fan_out
from kaspar.streams.windows import Duration, milliseconds


class Record(NamedTuple):
    """A record that processors receive and forward."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> "Record":
        return self._replace(key=key)

    def with_value(self, value: Any) -> "Record":
        return self._replace(value=value)

    def with_timestamp(self, timestamp: int) -> "Record":
        return self._replace(timestamp=timestamp)

    def with_headers(self, headers: Headers) -> "Record":
        return self._replace(headers=tuple(headers))


class Processor:
    """The base class of processors. Subclasses override `process`, and `init` and `close` if they need them."""

    def init(self, context: "ProcessorContext") -> None:
        self.context = context

    def process(self, record: Record) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Called at the end of the micro-batch."""


class ProcessorContext:
    def __init__(
        self, context: TaskContext, node: "ProcessorNode", children: Sequence[Receiver], names: Sequence[str]
    ) -> None:
        self._context = context
        self._node = node
        self._all = fan_out(children)
        self._by_name = dict(zip(names, children, strict=True))

    @property
    def application_id(self) -> str:
        return self._context.application_id

    @property
    def partition(self) -> int:
        """The partition of the task."""
        return self._context.task_partition

    @property
    def topic(self) -> str:
        """The topic of the current record; empty in a punctuator."""
        return self._context.topic

    @property
    def offset(self) -> int:
        return self._context.offset

    def store(self, name: str) -> Any:
        """A store that was named in process(), or the store of a global table."""
        stores = self._context.stores
        if name not in stores or (name not in self._node.stores and name not in self._context.global_stores):
            raise StreamsError(
                f"The processor {self._node.name} uses the store {name} without declaring it: name it in process()."
            )
        return stores[name]

    def forward(self, record: Record, child: str | None = None) -> None:
        """Forward a record to all children, or to the child of the given name."""
        receive = self._all
        if child is not None:
            if child not in self._by_name:
                raise StreamsError(f"The processor {self._node.name} has no child {child}.")
            receive = self._by_name[child]
        context = self._context
        before, context.headers = context.headers, record.headers or None
        try:
            receive(record.key, record.value, record.timestamp)
        finally:
            context.headers = before

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call a function whenever this much stream time or wall-clock time has passed."""
        interval_ms = milliseconds(interval, "The interval of a punctuation")
        if not interval_ms:
            raise StreamsError("The interval of a punctuation must be at least a millisecond.")
        punctuations = self._context.punctuations
        assert punctuations is not None, "processors run in tasks"
        return punctuations.schedule(self._node.name, interval_ms, kind, callback)

    def current_stream_time_ms(self) -> int:
        return self._context.stream_time.now

    def current_system_time_ms(self) -> int:
        """The start time of the micro-batch, which is the same for all of its records and tasks."""
        return self._context.wall_clock_ms


class ProcessorNode(Node):
    needs_task = True
    global_stores = None

    def __init__(self, name: str, supplier: Callable[[], Processor], *, keeps_key: bool = False) -> None:
        super().__init__(name)
        self.supplier = supplier
        self.keeps_key = keeps_key

    def bind(self, context: TaskContext, children: Sequence[Receiver]) -> Receiver:
        processor = self.supplier()
        names = [child.name for child in self.children]
        own = (_FixedKeyContext if self.keeps_key else ProcessorContext)(context, self, children, names)
        processor.init(own)
        process = processor.process
        context.closing.append(processor.close)

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if self.keeps_key:
                own.key = key  # type: ignore[attr-defined]
            process(Record(key, value, timestamp, tuple(context.headers or ())))

        return receive


class _FixedKeyContext(ProcessorContext):
    """The context of process_values(): forwards only records with the key of the current record."""

    key: Any = None

    def forward(self, record: Record, child: str | None = None) -> None:
        if record.key is not self.key and record.key != self.key:
            raise StreamsError(
                f"The processor {self._node.name} forwards the key {record.key!r} instead of {self.key!r}, but "
                "process_values() must keep keys: use process()."
            )
        super().forward(record, child)
