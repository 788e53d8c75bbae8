"""The demo without Spark: a consumer reads the events, and the view shows rates, offsets and end-to-end latency."""

import threading
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kaspar.cli.demo_threads import PARTITIONS, TOPIC, Figures, Worker
from kaspar.cli.demo_view import Screen


def show_consumer(bootstrap: str, figures: Figures, stop: threading.Event, screen: Screen) -> None:
    with Worker(stop, _consume, bootstrap, figures, stop):
        produced, consumed = figures.produced, figures.consumed
        for _ in screen.ticks():
            rates = f"produced {figures.produced - produced:>7,}/s   consumed {figures.consumed - consumed:>7,}/s"
            produced, consumed = figures.produced, figures.consumed
            latencies = sorted(figures.latencies_ms)
            middle = f"{latencies[len(latencies) // 2]:.0f} ms" if latencies else "-"
            details = [
                f"  partition {partition}   end offset {end:>9,}   read up to {read:>9,}   lag {max(0, end - read):>6,}"
                for partition, (end, read) in enumerate(zip(figures.end_offsets, figures.read_offsets, strict=True))
            ]
            screen.draw(
                f"{rates}   total {produced:>9,}   end to end {middle} (p50)",
                [*details, f"  last event  {figures.last_value}"],
                "end offsets " + " ".join(str(offset) for offset in figures.end_offsets),
            )


def _consume(bootstrap: str, figures: Figures, stop: threading.Event) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(100, timeout=0.1):
            problem = message.error()
            if problem is not None:
                raise KafkaException(problem)
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            figures.consumed += 1
            figures.read_offsets[partition] = offset + 1
            figures.latencies_ms.append(time.time() * 1000 - message.timestamp()[1])
            figures.last_value = value.decode() if isinstance(value, bytes) else ""
    consumer.close()
