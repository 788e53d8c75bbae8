"""`kaspar demo`: a broker, a topic, events flowing through it, and a live view of rates and offsets."""

import itertools
import json
import random
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.base.errors import KasparError
from kaspar.testing import Broker

TOPIC = "page-views"
PARTITIONS = 4
PORT = 9092
PAGES = ("/", "/pricing", "/docs", "/docs/quickstart", "/blog", "/login", "/cart")
COUNTRIES = ("DE", "FR", "IN", "JP", "BR", "US", "NG", "SE")


@dataclass
class Figures:
    """What the two threads have done so far, and what the view draws."""

    produced: int = 0
    consumed: int = 0
    end_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    read_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    last_value: str = ""
    problem: BaseException | None = None


def run_demo(*, seconds: float | None, rate: int) -> int:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    started = time.perf_counter()
    try:
        with Broker(process=True, port=PORT if _is_free(PORT) else 0) as broker:
            print(f"The broker is up on {broker.bootstrap_servers} after {time.perf_counter() - started:.2f} s.")
            print(f"Its data is in {broker.data_dir}, and is removed when the demo ends.\n")
            print("Connect with any Kafka client, for example:")
            print(f"  kcat -b {broker.bootstrap_servers} -t {TOPIC} -C -o -5")
            print(f"  kafka-get-offsets.sh --bootstrap-server {broker.bootstrap_servers} --topic {TOPIC}\n")
            _create_topic(broker.bootstrap_servers)
            figures = Figures()
            workers = [
                threading.Thread(target=_guarded, args=(work, broker.bootstrap_servers, figures, stop, rate))
                for work in (_produce, _consume)
            ]
            for worker in workers:
                worker.start()
            _watch(figures, stop, time.monotonic() + seconds if seconds else None)
            stop.set()
            for worker in workers:
                worker.join()
            if figures.problem is not None:
                raise KasparError(f"the demo stopped: {figures.problem}")
            print(f"\n{figures.produced:,} records produced, {figures.consumed:,} consumed. Goodbye.")
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    return 0


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    admin.create_topics([topic])[TOPIC].result(10)
    print(f"Created the topic {TOPIC} with {PARTITIONS} partitions. Ctrl-C ends the demo.\n")


Work = Callable[[str, Figures, threading.Event, int], None]


def _guarded(work: Work, bootstrap: str, figures: Figures, stop: threading.Event, rate: int) -> None:
    try:
        work(bootstrap, figures, stop, rate)
    except Exception as problem:  # the edge of the thread: the demo ends with it
        figures.problem = problem
        stop.set()


def _produce(bootstrap: str, figures: Figures, stop: threading.Event, rate: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    chance = random.Random()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        figures.produced += 1
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        figures.end_offsets[partition] = offset + 1

    started = time.monotonic()
    for number in itertools.count():
        if stop.is_set():
            break
        event = {"user": chance.randint(1, 5_000), "page": chance.choice(PAGES), "country": chance.choice(COUNTRIES)}
        producer.produce(
            TOPIC,
            key=str(event["user"]),
            value=json.dumps(event),
            timestamp=int(time.time() * 1000),
            on_delivery=delivered,
        )
        producer.poll(0)
        ahead = (number + 1) / rate - (time.monotonic() - started)
        if ahead > 0.005:
            stop.wait(ahead)
    producer.flush(10)


def _consume(bootstrap: str, figures: Figures, stop: threading.Event, rate: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(max(1, rate // 20), timeout=0.1):
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


def _watch(figures: Figures, stop: threading.Event, until: float | None) -> None:
    """Draw the figures every second: in place on a terminal, a line each elsewhere."""
    in_place = sys.stdout.isatty()
    produced = consumed = 0
    drawn = 0
    while not stop.wait(min(1.0, max(0.0, until - time.monotonic())) if until else 1.0):
        rates = f"produced {figures.produced - produced:>7,}/s   consumed {figures.consumed - consumed:>7,}/s"
        produced, consumed = figures.produced, figures.consumed
        latencies = sorted(figures.latencies_ms)
        middle = f"{latencies[len(latencies) // 2]:.0f} ms" if latencies else "-"
        lines = [f"{rates}   total {produced:>9,}   end to end {middle} (p50)"]
        if in_place:
            for partition in range(PARTITIONS):
                end, read = figures.end_offsets[partition], figures.read_offsets[partition]
                lag = max(0, end - read)
                lines.append(f"  partition {partition}   end offset {end:>9,}   read up to {read:>9,}   lag {lag:>6,}")
            lines.append(f"  last event  {figures.last_value}"[:110])
            if drawn:
                print(f"\x1b[{drawn}A", end="")
            print("\n".join(f"{line}\x1b[K" for line in lines), flush=True)
            drawn = len(lines)
        else:
            offsets = " ".join(str(offset) for offset in figures.end_offsets)
            print(f"{lines[0]}   end offsets {offsets}", flush=True)
        if until is not None and time.monotonic() >= until:
            return
