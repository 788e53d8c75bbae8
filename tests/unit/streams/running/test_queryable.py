"""The page with the contents of the stores: requests that do not fit a store are refused with the path that does."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kaspar.streams import SessionWindows, StreamsBuilder, TimeWindows
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.local_stores import LocalStore
from kaspar.streams.running.queryable import make_app
from kaspar.streams.running.versions import Versions
from kaspar.web.pages import PageServer
from tests.unit.streams.running.batches import Runtime, source_rows

HOUR = 3_600_000
Refusal = Callable[[str], tuple[int, str]]


@pytest.fixture
def refusal(tmp_path: Path) -> Iterator[Refusal]:
    """The status and the error of a request that is refused."""
    builder = StreamsBuilder()
    clicks = builder.stream("clicks").group_by_key()
    clicks.count("counts")
    clicks.windowed_by(TimeWindows.of_size(60_000)).count("per-minute")
    (plan,) = builder.build().sub_topologies
    config = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "localhost:9092"})
    stores = {name: LocalStore(name, plan, config, Versions({}, 1), tmp_path, 1) for name in ("counts", "per-minute")}
    page = PageServer(lambda: make_app(lambda: stores), host="127.0.0.1", port=0)

    def get(path: str) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{page.port}{path}", timeout=30)
        with refused.value as response:
            return response.code, json.load(response)["error"]

    page.start()
    try:
        yield get
    finally:
        page.stop()


@pytest.mark.parametrize("path", ["keys/ada", "range"])
def test_store_with_windows_is_read_by_windows(path: str, refusal: Refusal) -> None:
    assert refusal(f"/stores/per-minute/{path}") == (
        409,
        "The store per-minute has windows: GET /stores/per-minute/windows/KEY.",
    )


def test_store_without_windows_is_read_by_keys(refusal: Refusal) -> None:
    assert refusal("/stores/counts/windows/ada") == (
        409,
        "The store counts has no windows: GET /stores/counts/keys/KEY.",
    )


def test_limit_of_a_range_of_windows_is_checked(refusal: Refusal) -> None:
    assert refusal("/stores/per-minute/windows?limit=10001") == (400, "limit must be at most 10000, not 10001.")


@pytest.mark.parametrize("windows", [TimeWindows.of_size(60_000), SessionWindows.of_inactivity_gap(60_000)])
def test_windows_of_a_range_of_keys(windows: Any, tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("clicks").group_by_key().windowed_by(windows.grace(HOUR)).count("windows")
    runtime = Runtime(builder.build(), tmp_path, partitions=2)
    records = [(key, b"x", time) for time in (0, 10, 300_000) for key in (b"ada", b"bob", b"eve")]
    runtime.run(source_rows("clicks", records))
    config = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
    (plan,) = builder.build().sub_topologies
    store = LocalStore("windows", plan, config, runtime.versions, tmp_path, 2)
    page = PageServer(lambda: make_app(lambda: {"windows": store}), host="127.0.0.1", port=0)
    page.start()

    def get(query: str) -> list[tuple[str, int, int]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/stores/windows/windows{query}", timeout=30) as found:
            return sorted((each["key"], each["start"], each["value"]) for each in json.load(found))

    try:
        assert get("") == [
            (key, start, count) for key in ("ada", "bob", "eve") for start, count in ((0, 2), (300_000, 1))
        ]
        assert get("?from=200000") == [("ada", 300_000, 1), ("bob", 300_000, 1), ("eve", 300_000, 1)]
        assert get("?to=200000&first_key=b&last_key=bob") == [("bob", 0, 2)]
        assert len(get("?limit=4")) == 4
    finally:
        page.stop()


def test_range_is_read_page_by_page(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("clicks").group_by_key().count("counts")
    runtime = Runtime(builder.build(), tmp_path, partitions=2)
    keys = [f"key{number:02}" for number in range(25)]
    runtime.run(source_rows("clicks", [(key.encode(), b"x", 0) for key in keys]))
    config = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
    (plan,) = builder.build().sub_topologies
    store = LocalStore("counts", plan, config, runtime.versions, tmp_path, 2)
    page = PageServer(lambda: make_app(lambda: {"counts": store}), host="127.0.0.1", port=0)
    page.start()

    def get(query: str) -> list[str]:
        url = f"http://127.0.0.1:{page.port}/stores/counts/range?limit=10&to=key22{query}"
        with urllib.request.urlopen(url, timeout=30) as response:
            return [each["key"] for each in json.load(response)]

    try:
        assert get("") == keys[:10]
        assert get("&after=key09") == keys[10:20]
        assert get("&after=key19") == keys[20:23]
        assert get("&after=key22") == []
        assert get("&after=key195") == keys[20:23], "a key that was deleted meanwhile"
    finally:
        page.stop()


def test_range_begins_at_one_key(refusal: Refusal) -> None:
    assert refusal("/stores/counts/range?from=a&after=b") == (400, "from and after cannot be used together.")


def test_unknown_store_is_not_found(refusal: Refusal) -> None:
    assert refusal("/stores/count") == (404, "Unknown store count: GET /stores lists them.")
