"""All cases in the order in which they run. Those with their own brokers come first, while no others are running."""

from bench.cases.case import Case
from bench.cases.cleaning import Cleaning, LatencyWhileCleaning
from bench.cases.groups import ClassicRebalance, Commits, ConsumerRebalance
from bench.cases.lifecycle import Idle, MemoryAfterLoad, Recovery, Start
from bench.cases.many_partitions import ManyPartitions
from bench.cases.requests import HighestRate, Latency, RequestRate
from bench.cases.throughput import Consume, FetchSizes, Produce, Shape
from bench.cases.transactions import ReadCommitted, Transactions

_SHAPES = [
    Shape(record_bytes, partitions, codec)
    for record_bytes in (1000, 100)
    for partitions in (1, 64)
    for codec in ("none", "lz4")
]
_CONNECTIONS = (1, 10)
_MEMBERS = (10, 50, 100)


def all_cases() -> list[Case]:
    return [
        Start(),
        Idle(),
        ManyPartitions(),
        Recovery(),
        *(Cleaning(record_bytes) for record_bytes in (1000, 100)),
        LatencyWhileCleaning(),
        *(Produce(shape, acks) for shape in _SHAPES for acks in ("1", "all")),
        *(Consume(shape) for shape in _SHAPES),
        *(FetchSizes(record_bytes) for record_bytes in (1000, 100)),
        *(RequestRate(connections) for connections in _CONNECTIONS),
        *(Latency(rate, connections) for rate in (1000, 20_000) for connections in _CONNECTIONS),
        *(HighestRate(connections) for connections in _CONNECTIONS),
        *(ClassicRebalance(members) for members in _MEMBERS),
        *(ConsumerRebalance(members) for members in _MEMBERS),
        *(Commits(connections) for connections in _CONNECTIONS),
        *(Transactions(records, producers) for records in (1, 100) for producers in _CONNECTIONS),
        ReadCommitted(),
        MemoryAfterLoad(),
    ]
