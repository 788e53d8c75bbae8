"""From the metrics pages of brokers to series."""

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.base.ids import TopicPartition
from kaspar.monitor.scraping.catalogue import FAMILIES, MEASURES, values_of
from kaspar.monitor.scraping.counters import CounterRates
from kaspar.monitor.scraping.exposition import parse
from kaspar.monitor.scraping.pages import MetricsPages
from kaspar.monitor.scraping.rates import Rates
from kaspar.monitor.settings import MonitorSettings
from kaspar.monitor.views import Point

HOUR_MS = 3_600_000
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
PAGE = """\
kafka_server_brokertopicmetrics_messagesin_total 100
kafka_server_brokertopicmetrics_messagesin_total{topic="t"} 60
kafka_network_requestmetrics_requests_total{request="Produce",version="13"} 5
kafka_network_requestmetrics_requests_total{request="Fetch",version="18"} 7
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 12.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 1.5
kafka_server_replicamanager_underreplicatedpartitions 2
process_resident_memory_bytes NaN
something_else 9
"""


def test_a_page_has_the_values_of_measures() -> None:
    assert values_of(parse(PAGE)) == {
        "messages_in": 100.0,
        "requests": 12.0,
        "produce_p99_ms": 12.5,
        "under_replicated": 2.0,
    }


def test_names_of_measures_are_distinct() -> None:
    assert len({each.name for each in MEASURES}) == len(MEASURES)


def test_a_counter_grows_and_begins_again_at_zero() -> None:
    rates: CounterRates[str] = CounterRates()
    assert rates.rate("c", 100, 1_000) is None
    assert rates.rate("c", 150, 6_000) == 10.0
    assert rates.rate("c", 150, 6_000) is None
    assert rates.rate("c", 20, 8_000) == 10.0  # restarted: 20 since then
    assert rates.rate("c", 20, 9_000) == 0.0


def test_the_cluster_has_the_sum_of_rates_and_the_worst_latency() -> None:
    rates = Rates(history_ms=HOUR_MS)
    for at_ms, grown in ((1_000, 0), (2_000, 10), (3_000, 30)):
        rates.add_pages(
            {
                1: {"messages_in": 5 + grown, "produce_p99_ms": 4, "connections": 3},
                2: {"messages_in": 9 + 2 * grown, "produce_p99_ms": 9, "connections": 4},
            },
            at_ms,
        )
    assert rates.series("messages_in", 0) == [Point(2_000, 30.0), Point(3_000, 60.0)]
    assert rates.series("messages_in", 2_500, broker=1) == [Point(3_000, 20.0)]
    assert (rates.latest("produce_p99_ms"), rates.latest("connections")) == (9.0, 7.0)
    assert (rates.brokers, rates.series("no such name", 0), rates.latest("no such name")) == ([1, 2], (), None)


def test_a_broker_that_is_away_is_missing_and_its_growth_counts_when_it_is_back() -> None:
    rates = Rates(history_ms=HOUR_MS)
    rates.add_pages({1: {"messages_in": 0}, 2: {"messages_in": 0}}, 1_000)
    rates.add_pages({1: {"messages_in": 10}}, 2_000)
    rates.add_pages({1: {"messages_in": 20}, 2: {"messages_in": 100}}, 3_000)
    assert rates.series("messages_in", 0, broker=2) == [Point(3_000, 50.0)]


def test_without_pages_the_ends_of_logs_tell_the_records_written() -> None:
    rates = Rates(history_ms=HOUR_MS)
    for at_ms, ends in ((0, {T0: 600, T1: 400}), (10_000, {T0: 1_000, T1: 500}), (20_000, {T0: 1_000, T1: 500})):
        rates.add_ends(ends, at_ms)
    assert rates.series("messages_in", 0) == [Point(10_000, 50.0), Point(20_000, 0.0)]


def test_a_log_that_is_deleted_truncated_or_new_does_not_look_like_records_written() -> None:
    rates = Rates(history_ms=HOUR_MS)
    rates.add_ends({T0: 1_000_000, T1: 400, T2: 900}, 0)
    rates.add_ends({T0: 1_000_010, T1: 300, TopicPartition("new", 0): 7_000}, 10_000)
    assert rates.series("messages_in", 0) == [Point(10_000, 1.0)]


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """A page at /metrics, and errors elsewhere; `asked` has the families of the last request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self.server.asked = parse_qs(url.query).get("name[]")  # type: ignore[attr-defined]
            self.server.authorization = self.headers.get("authorization")  # type: ignore[attr-defined]
            if url.path != "/metrics":
                self.send_error(500)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode() + b"bad \xff line\n")

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_pages_are_read_side_by_side_and_problems_are_reported(server: ThreadingHTTPServer) -> None:
    port = server.server_port
    values = {
        "kaspar.metrics.urls": f"1=http://127.0.0.1:{port}/metrics, 2=http://127.0.0.1:{port}/gone,3=http://127.0.0.1:1/",
        "kaspar.metrics.user": "someone",
        "kaspar.metrics.password": "secret",
    }

    async def scenario() -> None:
        pages = MetricsPages(MonitorSettings.of(values))
        read = await pages.read()
        assert read == {1: values_of(parse(PAGE))}
        assert set(pages.problems) == {2, 3}
        await pages.close()

    asyncio.run(scenario())
    assert server.authorization.startswith("Basic ")  # type: ignore[attr-defined]


def test_only_the_needed_families_are_asked_for(server: ThreadingHTTPServer) -> None:
    async def scenario() -> None:
        pages = MetricsPages(
            MonitorSettings.of({"kaspar.metrics.urls": f"1=http://127.0.0.1:{server.server_port}/metrics"})
        )
        await pages.read()
        await pages.close()

    asyncio.run(scenario())
    assert server.asked == list(FAMILIES)  # type: ignore[attr-defined]


@pytest.mark.parametrize("urls", ["http://x/metrics", "1=ftp://x", "a=http://x", "1="])
def test_addresses_of_pages_are_checked(urls: str) -> None:
    with pytest.raises(InvalidSetting, match="is not BROKER=http://host:port/path"):
        MonitorSettings.of({"kaspar.metrics.urls": urls})
