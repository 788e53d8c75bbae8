"""The page with the contents of the stores: requests that do not fit a store are refused with the path that does."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.streams import StreamsBuilder, TimeWindows
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.local_stores import LocalStore
from kaspar.streams.running.queryable import make_app
from kaspar.streams.running.versions import Versions
from kaspar.web.pages import PageServer

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


def test_unknown_store_is_not_found(refusal: Refusal) -> None:
    assert refusal("/stores/count") == (404, "Unknown store count: GET /stores lists them.")
