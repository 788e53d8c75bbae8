"""The command: runs everything that `kaspar up` runs, produces events to topics, and shows in this terminal and in the
console how they are processed.

With Spark, two streams programs process them exactly once. If something that these need is missing, the demo says how
to install it and reads the events with a consumer instead.
"""

import heapq
import importlib.util
import sys
import threading
import time
import webbrowser
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.demo.events import clicks, trades, with_mistakes
from kaspar.demo.platform import Platform, Stopped
from kaspar.demo.screen import Screen
from kaspar.demo.threads import Worker, listen_to_signals
from kaspar.spark.running.java import find_java
from kaspar.web.catalogue import SERVICES

if TYPE_CHECKING:
    from kaspar.demo.producing import Producing

TOPICS: Final = ("trades", "page-views", "searches", "profiles")
_MISTAKES: Final = 0.01
"""The share of page views that cannot be parsed."""


def run_demo(*, seconds: float | None, rate: int, with_spark: bool = True, opens_console: bool = False) -> int:
    """Run for `seconds` after everything is up, or until Ctrl-C if `seconds` is None. Returns the exit code."""
    stop = threading.Event()
    listen_to_signals(stop)
    try:
        _check(seconds, rate)
        started = time.perf_counter()
        with Platform(stop) as platform:
            print(f"Ready after {time.perf_counter() - started:.1f} s:", flush=True)
            _show_addresses(platform)
            if opens_console and (console := platform.urls.get("console")):
                webbrowser.open(console)
            obstacle = obstacle_to_spark() if with_spark else None
            if obstacle is not None:
                print(f"Without Spark for now: {obstacle}.")
            _run(platform, stop, Screen(stop, seconds, sys.stdout), rate, with_spark=with_spark and obstacle is None)
    except Stopped:
        return 0
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    return 0


def _check(seconds: float | None, rate: int) -> None:
    """Raises KasparError if an argument is invalid or the Kafka client is missing."""
    if rate < 1:
        raise KasparError(f"--rate must be at least 1 record per second, not {rate}")
    if seconds is not None and seconds <= 0:
        raise KasparError(f"--seconds must be positive, not {seconds:g}")
    if importlib.util.find_spec("confluent_kafka") is None:
        raise KasparError("the demo needs confluent-kafka as its Kafka client: pip install 'kaspar[tools]'")


def _show_addresses(platform: Platform) -> None:
    urls = sorted(platform.urls.items(), key=lambda entry: entry[0] != "console")
    addresses = {SERVICES[name].title: url for name, url in urls} | {"bootstrap servers": platform.bootstrap_servers}
    width = max(map(len, addresses))
    for title, address in addresses.items():
        print(f"  {title:{width}}  {address}")
    print(f"All data is in {platform.folder} and will be removed when the demo ends.", flush=True)


def _run(platform: Platform, stop: threading.Event, screen: Screen, rate: int, *, with_spark: bool) -> None:
    from kaspar.demo import shop
    from kaspar.demo.producing import Producing, create_topics

    bootstrap = platform.bootstrap_servers
    create_topics(bootstrap, [*TOPICS, shop.ORDERS, shop.PAYMENTS])
    print(f"About {rate:,} events per second are written to {', '.join(TOPICS)}, plus orders and payments.")
    producing = Producing(bootstrap)
    with ExitStack() as workers:
        workers.enter_context(Worker(stop, _produce, producing, rate, stop))
        workers.enter_context(Worker(stop, shop.take_orders, bootstrap, stop))
        workers.enter_context(Worker(stop, shop.recommend, bootstrap, stop))
        if {"registry", "rest"} <= platform.urls.keys():
            workers.enter_context(Worker(stop, shop.take_payments, platform.urls["rest"], stop))
        if with_spark:
            from kaspar.demo.live import show_programs

            print("Two streams programs read them: stock-statistics and click-enrichment.")
            print("Ctrl-C ends the demo.\n", flush=True)
            done = show_programs(platform, producing.stored, stop, screen)
        else:
            from kaspar.demo.plain import show_consumer

            print("A consumer reads them. Ctrl-C ends the demo.\n", flush=True)
            done = show_consumer(bootstrap, TOPICS, producing.stored, stop, screen)
    print(f"\n{producing.stored.total():,} events produced, {done}. Goodbye.", flush=True)


def _produce(producing: "Producing", rate: int, stop: threading.Event) -> None:
    """Produce events: half of them trades, half clicks. A few page views cannot be parsed."""
    now_ms = int(time.time() * 1000)
    views = with_mistakes(clicks(now_ms, now_ms, rate / 2), "page-views", seed=now_ms, share=_MISTAKES)
    producing.run(heapq.merge(trades(now_ms, now_ms, rate / 2), views, key=lambda event: event[3]), stop)
    producing.flush()


def obstacle_to_spark() -> str | None:
    """Why the programs cannot run: what they need is not installed. None if they can."""
    for package in ("pyspark", "lmdb", "sortedcontainers"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install 'kaspar[streams]'"
    try:
        find_java()
    except KasparError as missing:
        return str(missing)
    return None
