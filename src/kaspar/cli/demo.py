"""`kaspar demo`: a broker, events flowing into a topic, and a live view of what becomes of them.

With Spark: a query counts them by page and window, and writes the counts to another topic, exactly once. Where there is
no Java, or no PySpark, the demo says how to get it and reads the events with a consumer instead.
"""

import importlib.util
import socket
import sys
import threading
import time

from kaspar.base.errors import KasparError
from kaspar.cli.demo_events import TOPIC, Figures, Worker, create_topic, listen_to_signals, produce
from kaspar.cli.demo_view import Screen
from kaspar.spark.java import find_java
from kaspar.testing import Broker

PORT = 9092


def run_demo(*, seconds: float | None, rate: int, with_spark: bool = True) -> int:
    """`seconds`: how long to show it, once all of it is up; without it until Ctrl-C."""
    stop = threading.Event()
    listen_to_signals(stop)
    started = time.perf_counter()
    try:
        if rate < 1:
            raise KasparError(f"the demo needs at least one record a second, not {rate}")
        if seconds is not None and seconds <= 0:
            raise KasparError(f"the demo needs some time to show anything, not {seconds:g} seconds")
        obstacle = _obstacle_to_spark() if with_spark else None
        with Broker(process=True, port=PORT if _is_free(PORT) else 0) as broker:
            print(f"The broker is up on {broker.bootstrap_servers} after {time.perf_counter() - started:.2f} s.")
            print(f"Its data is in {broker.data_dir}, and is removed when the demo ends.\n")
            print("Connect with any Kafka client, for example:")
            print(f"  kcat -b {broker.bootstrap_servers} -t {TOPIC} -C -o -5\n")
            create_topic(broker.bootstrap_servers, TOPIC)
            print(f"Events flow into the topic {TOPIC}, {rate:,} a second. Ctrl-C ends the demo.\n", flush=True)
            figures = Figures()
            with Worker(stop, produce, broker.bootstrap_servers, figures, stop, rate):
                if obstacle is not None:
                    print(f"Without Spark for now: {obstacle}.\n")
                if obstacle is not None or not with_spark:
                    from kaspar.cli.demo_plain import show_consumer

                    show_consumer(broker.bootstrap_servers, figures, stop, Screen(stop, seconds))
                else:
                    from kaspar.cli.demo_spark import show_query

                    show_query(broker.bootstrap_servers, figures, stop, Screen(stop, seconds))
            print(f"\n{figures.produced:,} records produced, {figures.consumed:,} {figures.consumed_how}. Goodbye.")
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while PySpark starts, an interrupt is its own
        print("\nGoodbye.")
    return 0


def _obstacle_to_spark() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'kaspar[spark]'"
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
