"""The demo with Spark: shows both programs, their results and their figures, every second.

The results are read from their topics by a read_committed consumer: what is shown is what any consumer would see.
"""

import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kaspar.demo.delays import Delays
from kaspar.demo.platform import Platform
from kaspar.demo.producing import PARTITIONS, QUIET, create_topics
from kaspar.demo.program import dead_letters_of
from kaspar.demo.programs import CLICKS, STOCKS, Programs
from kaspar.demo.results import STOCKS_TOPIC, VIEWS_TOPIC, Stocks, View, Views
from kaspar.demo.screen import Heading, Screen
from kaspar.demo.threads import Worker
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.streams import Window

_REDRAW_S: Final = 0.5
_BAR: Final = 24
_MOST_VIEWS: Final = 14
_NEXT: Final = "Next: the console, docs/streams.md, examples/streams. Press Ctrl-C to end the demo."


def show_programs(platform: Platform, stored: Counter[str], stop: threading.Event, screen: Screen) -> str:
    """Returns a sentence that says what was done. `stored` has the number of events in each topic."""
    bootstrap = platform.bootstrap_servers
    create_topics(bootstrap, [STOCKS_TOPIC, VIEWS_TOPIC, *(dead_letters_of(name) for name in (STOCKS, CLICKS))])
    stocks, views = Stocks(), Views()
    programs = Programs(bootstrap, platform.pipelines, platform.folder / "state")
    live = LiveView(programs, stocks, views, stored, screen)
    try:
        with Worker(stop, _read, bootstrap, stop, stocks, views):
            live.show_start(stop)
            live.show()
    finally:
        programs.stop()
    return f"{stocks.trades:,} trades summarised and {views.results:,} views enriched, with exactly_once_v2"


# --- the screen -------------------------------------------------------------------------------------------------------


class LiveView:
    def __init__(self, programs: Programs, stocks: Stocks, views: Views, stored: Counter[str], screen: Screen) -> None:
        self._programs = programs
        self._stocks = stocks
        self._views = views
        self._stored = stored
        self._screen = screen

    def show_start(self, stop: threading.Event) -> None:
        """Show the start until both programs have results. Results of the first one are shown at once."""
        started = time.monotonic()
        while not (self._stocks.results and self._views.results):
            self._programs.check()
            waiting = f"Waiting for {self._programs.waiting_for or 'the first results'}"
            spent = f"{waiting}: {time.monotonic() - started:.0f} s (10 to 20 s in total on an idle machine)."
            if self._stocks.results or self._views.results:
                self._screen.draw(self._lines(spent), waiting)
            else:
                events = [f"  {count:>9,} {topic}" for topic, count in sorted(self._stored.items())]
                self._screen.draw([Heading(spent), *events], waiting)
            if stop.wait(_REDRAW_S):
                return

    def show(self) -> None:
        """Show the results until the time is up or the demo is stopped."""
        before = self._stored.total()
        for _ in self._screen.ticks():
            self._programs.check()
            rate, before = self._stored.total() - before, self._stored.total()
            events = f"{rate:,} events/s into {', '.join(sorted(self._stored))}; {before:,} so far"
            self._screen.draw(self._lines(events), self._in_two_lines())

    def _lines(self, headline: str) -> list[str]:
        upper = [
            headline,
            "",
            Heading(_figures(self._programs.status(STOCKS), self._stocks.delays)),
            *_table_of_stocks(self._stocks),
            "",
            Heading(_figures(self._programs.status(CLICKS), self._views.delays)),
            _columns("user", "name", "city", "page", "searched for"),
        ]
        lower = ["", _NEXT]
        fitting = max(1, min(_MOST_VIEWS, self._screen.rows - len(upper) - len(lower)))
        return [*upper, *map(_line_of_view, list(self._views.last)[-fitting:]), *lower]

    def _in_two_lines(self) -> str:
        of_stocks = _figures(self._programs.status(STOCKS), self._stocks.delays)
        of_clicks = _figures(self._programs.status(CLICKS), self._views.delays)
        last_view = _line_of_view(self._views.last[-1])
        return f"{of_stocks}   {_busiest_stock(self._stocks)}\n{of_clicks} {last_view}"


def _figures(program: PipelineStatus, delays: Delays) -> str:
    name = program.name
    if program.state is State.RESTARTING:
        return f"{name}   is restarting: {program.reason}"
    age_ms = delays.middle_ms
    if age_ms is None:
        return f"{name}   has no results yet"
    progress = program.progress
    rate = progress.input_rows_per_second or progress.processed_rows_per_second or 0
    return (
        f"{name}   {rate:>5,.0f} rows/s   lag {progress.lag or 0:>5,}   "
        f"batch {progress.batch_ms or 0:>5,} ms   latency {age_ms / 1000:.1f} s"
    )


def _table_of_stocks(stocks: Stocks) -> list[str]:
    window = stocks.last_window()
    if window is None:
        return []
    found = [(symbol, stocks.at(window, symbol)) for symbol in stocks.symbols]
    most = max((statistics.trades for _, statistics in found if statistics is not None), default=1)
    rows = [f"  {'symbol':<10}{'lowest ask':>12}{'average':>10}{'trades':>9}   {_times(window)}"]
    for symbol, statistics in found:
        if statistics is None:
            rows.append(f"  {symbol:<10}{'-':>12}{'-':>10}{0:>9}")
            continue
        figures = f"{statistics.lowest_ask:>12,.2f}{statistics.average_ask:>10,.2f}{statistics.trades:>9,}"
        rows.append(f"  {symbol:<10}{figures}   {'█' * (_BAR * statistics.trades // most)}")
    return rows


def _busiest_stock(stocks: Stocks) -> str:
    window = stocks.last_window()
    found = {symbol: each for symbol in stocks.symbols if window is not None and (each := stocks.at(window, symbol))}
    if window is None or not found:
        return ""
    symbol, most = max(found.items(), key=lambda entry: entry[1].trades)
    return f"{_times(window)}: {symbol} {most.trades} trades from {most.lowest_ask:.2f}, average {most.average_ask:.2f}"


def _times(window: Window) -> str:
    start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (window.start, window.end))
    return f"{start:%H:%M:%S} to {end:%H:%M:%S} UTC"


def _line_of_view(view: View) -> str:
    return _columns(view.user, view.name or "-", view.city or "-", view.page, view.searched_for or "-")


def _columns(user: str, name: str, city: str, page: str, searched_for: str) -> str:
    return f"  {user:<11}{name:<9}{city:<10}{page:<15}{searched_for}"


# --- around it --------------------------------------------------------------------------------------------------------


def _read(bootstrap: str, stop: threading.Event, stocks: Stocks, views: Views) -> None:
    consumer = Consumer(
        {
            **QUIET,
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    results: dict[str | None, Stocks | Views] = {STOCKS_TOPIC: stocks, VIEWS_TOPIC: views}
    topics = (STOCKS_TOPIC, VIEWS_TOPIC)
    consumer.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in range(PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(500, timeout=0.1):
            problem = message.error()
            if problem is not None:
                raise KafkaException(problem)
            key, value, result = message.key(), message.value(), results[message.topic()]
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            result.apply(key, value)
            result.delays.add(time.time() * 1000 - message.timestamp()[1])
    consumer.close()
