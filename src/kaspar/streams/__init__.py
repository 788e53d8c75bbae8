"""Kafka Streams in Python, on Spark.

    from kaspar.streams import KafkaStreams, StreamsBuilder

    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.lower().split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    KafkaStreams(builder.build(), {"application.id": "word-count", "bootstrap.servers": "localhost:9092"}).run()

serdes/      conversion of keys and values to bytes
stores/      state stores: ordered maps of bytes, typed stores over them, their state on disk
topology/    the graph of a program, and its execution
operators/   the processing steps of the graph
dsl/         the API that a program calls to build its graph
running/     execution of the graph on Spark

Spark's workers import this package for every task, so it loads nothing until a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaspar.streams import serdes, stores
    from kaspar.streams.dsl.builder import StreamsBuilder
    from kaspar.streams.dsl.handles import GlobalKTable
    from kaspar.streams.dsl.streams_and_tables import KStream, KTable
    from kaspar.streams.dsl.suppressed import BufferConfig, Suppressed
    from kaspar.streams.errors import ProcessingError, StreamsError, TopologyError
    from kaspar.streams.kafka_streams import KafkaStreams
    from kaspar.streams.operators.processors import Processor, ProcessorContext, Record
    from kaspar.streams.operators.transform_values import ValueTransformer
    from kaspar.streams.stores.typed import ValueAndTimestamp
    from kaspar.streams.test_driver import TopologyTestDriver
    from kaspar.streams.topology.context import PunctuationType
    from kaspar.streams.topology.topology import Topology
    from kaspar.streams.windows import (
        EmitStrategy,
        JoinWindows,
        SessionWindows,
        SlidingWindows,
        TimeWindows,
        Window,
        Windowed,
    )

_MODULES = {
    "serdes": "serdes",
    "stores": "stores",
    "StreamsBuilder": "dsl.builder",
    "KStream": "dsl.streams_and_tables",
    "GlobalKTable": "dsl.handles",
    "KTable": "dsl.streams_and_tables",
    "BufferConfig": "dsl.suppressed",
    "Suppressed": "dsl.suppressed",
    "ProcessingError": "errors",
    "StreamsError": "errors",
    "TopologyError": "errors",
    "KafkaStreams": "kafka_streams",
    "Processor": "operators.processors",
    "ProcessorContext": "operators.processors",
    "Record": "operators.processors",
    "ValueTransformer": "operators.transform_values",
    "ValueAndTimestamp": "stores.typed",
    "TopologyTestDriver": "test_driver",
    "PunctuationType": "topology.context",
    "Topology": "topology.topology",
    "EmitStrategy": "windows",
    "JoinWindows": "windows",
    "SessionWindows": "windows",
    "SlidingWindows": "windows",
    "TimeWindows": "windows",
    "Window": "windows",
    "Windowed": "windows",
}

__all__ = [
    "BufferConfig",
    "EmitStrategy",
    "GlobalKTable",
    "JoinWindows",
    "KStream",
    "KTable",
    "KafkaStreams",
    "ProcessingError",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "SessionWindows",
    "SlidingWindows",
    "StreamsBuilder",
    "StreamsError",
    "Suppressed",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "ValueAndTimestamp",
    "ValueTransformer",
    "Window",
    "Windowed",
    "serdes",
    "stores",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES[name]}")
    return module if name in ("serdes", "stores") else getattr(module, name)
