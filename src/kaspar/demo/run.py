"""The command: a broker, events flowing into topics, and a live view of what becomes of them.

With Spark, two streams programs process them exactly once. Without what these need, the demo says how to install it and
reads the events with a consumer instead.
"""

import heapq
import importlib.util
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.demo.events import clicks, trades
from kaspar.demo.quiet import quiet_stderr
from kaspar.demo.screen import Screen
from kaspar.demo.threads import Worker, listen_to_signals
from kaspar.spark.running.java import find_java
from kaspar.testing import Broker

if TYPE_CHECKING:
    from kaspar.demo.producing import Producing

PORT: Final = 9092
TOPICS: Final = ("trades", "page-views", "searches", "profiles")


def run_demo(*, seconds: float | None, rate: int, with_spark: bool = True) -> int:
    """Runs for `seconds` once everything is up; until Ctrl-C if that is None."""
    stop = threading.Event()
    listen_to_signals(stop)
    started = time.perf_counter()
    try:
        if rate < 1:
            raise KasparError(f"--rate must be at least 1 record a second, not {rate}")
        if seconds is not None and seconds <= 0:
            raise KasparError(f"--seconds must be positive, not {seconds:g}")
        if importlib.util.find_spec("confluent_kafka") is None:
            raise KasparError("the demo needs confluent-kafka as its Kafka client: pip install 'kaspar[tools]'")
        from kaspar.demo.producing import Producing, create_topics

        obstacle = obstacle_to_spark() if with_spark else None
        with quiet_stderr(), Broker(process=True, port=PORT if _is_free(PORT) else 0) as broker:
            bootstrap = broker.bootstrap_servers
            print(f"The broker is up on {bootstrap} after {time.perf_counter() - started:.2f} s.")
            print(f"Its data is in {broker.data_dir} and is removed when the demo ends.")
            print(f"Connect with any Kafka client: kcat -b {bootstrap} -t trades -C -o -5\n")
            create_topics(bootstrap, TOPICS)
            print(f"About {rate:,} events a second go to {', '.join(TOPICS)}.")
            producing = Producing(bootstrap)
            with Worker(stop, _produce, producing, rate, stop):
                if obstacle is not None:
                    print(f"Without Spark for now: {obstacle}.")
                screen = Screen(stop, seconds, sys.stdout)
                if obstacle is not None or not with_spark:
                    from kaspar.demo.plain import show_consumer

                    print("A consumer reads them. Ctrl-C ends the demo.\n", flush=True)
                    done = show_consumer(bootstrap, TOPICS, producing.stored, stop, screen)
                else:
                    from kaspar.demo.live import show_programs

                    print("Two streams programs read them: stock-statistics and click-enrichment.")
                    print("Ctrl-C ends the demo.\n", flush=True)
                    done = show_programs(bootstrap, producing.stored, stop, screen)
            print(f"\n{producing.stored.total():,} events produced, {done}. Goodbye.")
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    return 0


def _produce(producing: "Producing", rate: int, stop: threading.Event) -> None:
    """Half of the events are trades, and half are clicks."""
    now_ms = int(time.time() * 1000)
    generated = [generator(now_ms, now_ms, rate / 2) for generator in (trades, clicks)]
    producing.run(heapq.merge(*generated, key=lambda event: event[3]), stop)
    producing.flush()


def obstacle_to_spark() -> str | None:
    """What the programs need and is missing."""
    for package in ("pyspark", "lmdb", "sortedcontainers"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install 'kaspar[streams]'"
    try:
        find_java()
    except KasparError as missing:
        return str(missing)
    return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
