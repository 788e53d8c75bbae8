"""`kaspar demo`: a broker, events flowing into a topic, and a live view of them.

With Spark, a query counts them by page and window and writes the counts to another topic, exactly once. Without Java or
PySpark the demo says how to install it and reads the events with a consumer instead.
"""

import importlib.util
import socket
import sys
import threading
import time

from kaspar.base.errors import KasparError
from kaspar.cli.demo_threads import TOPIC, Figures, Worker, listen_to_signals
from kaspar.cli.demo_view import Screen
from kaspar.spark.running.java import find_java
from kaspar.testing import Broker

PORT = 9092


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
        from kaspar.cli.demo_events import create_topic, produce

        obstacle = _obstacle_to_spark() if with_spark else None
        with Broker(process=True, port=PORT if _is_free(PORT) else 0) as broker:
            print(f"The broker is up on {broker.bootstrap_servers} after {time.perf_counter() - started:.2f} s.")
            print(f"Its data is in {broker.data_dir} and is removed when the demo ends.\n")
            print("Connect with any Kafka client, for example:")
            print(f"  kcat -b {broker.bootstrap_servers} -t {TOPIC} -C -o -5\n")
            create_topic(broker.bootstrap_servers, TOPIC)
            print(f"{rate:,} events a second go to the topic {TOPIC}. Ctrl-C ends the demo.\n", flush=True)
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
    except KeyboardInterrupt:  # while PySpark starts, it handles SIGINT itself
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
