"""The view of pipelines, with a host that responds as one with Spark does."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from kaspar.base.processes import ProcessId
from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.folder import Definition, Folder, RunningSupervisor, Wanted
from kaspar.pipelines.messages import (
    ApplyChanges,
    Described,
    DescribePipeline,
    ListPipelines,
    Pipelines,
    Request,
    Response,
)
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, QueryStatus, State
from kaspar.streams import StreamsBuilder
from tests.browser.accessibility import check_accessibility
from tests.browser.administration.conftest import is_harmless
from tests.browser.console import Console
from tests.browser.phone import check_fits_a_phone

HOSTILE_STEP = "<img/src=x/onerror=window.hacked=1>"


def word_count() -> str:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    return builder.build().describe()


def hostile() -> str:
    """The topology with a step whose name is markup."""
    return word_count().replace("KSTREAM-FLATMAPVALUES-0000000001", HOSTILE_STEP)


class Host:
    """Runs nothing, and follows what is wanted at once."""

    def __init__(self, folder: Folder, topology: str) -> None:
        self._folder = folder
        self._topology = topology
        progress = PipelineProgress(
            batches=7,
            input_rows_per_second=120.0,
            processed_rows_per_second=250.0,
            lag=42,
            batch_ms=310,
            state_bytes=2_000_000,
        )
        self._status = PipelineStatus(
            "word-count", State.RUNNING, 1_790_000_000_000, 1, "boom", 1_790_000_000_000, progress
        )

    def respond(self, request: Request) -> Response:
        match request:
            case ListPipelines() | ApplyChanges():
                return Pipelines((self._now(),), True)
            case DescribePipeline():
                queries = (QueryStatus("counts", "7d3e", True, "Waiting for data to arrive"),)
                return Described(
                    PipelineDetails(self._now(), "/programs/word_count.py", (), "/logs/it.log", queries, self._topology)
                )

    def _now(self) -> PipelineStatus:
        definition = self._folder.definition("word-count")
        assert definition is not None
        is_stopped = definition.wanted is Wanted.STOPPED
        return replace(self._status, state=State.STOPPED if is_stopped else State.RUNNING)


@contextmanager
def hosted(folder: Folder, topology: str) -> Iterator[None]:
    """The pipeline `word-count` runs in this folder."""
    folder.make()
    folder.define("word-count", Definition("/programs/word_count.py", (), 7))
    folder.write_supervisor(RunningSupervisor(ProcessId.of(os.getpid())))
    server = ControlServer(folder.socket, Host(folder, topology).respond)
    try:
        yield
    finally:
        server.close()


@pytest.fixture
def running(folder: Folder) -> Iterator[Folder]:
    with hosted(folder, hostile()):
        yield folder


def test_a_pipeline_shows_its_figures_queries_and_topology(page: Page, secured: Console, running: Folder) -> None:
    secured.open(page, "#/pipelines")
    row = page.locator("tr[data-row]")
    for text in ("running", "250/s", "42", "310 ms", "2 MB"):
        expect(row).to_contain_text(text)
    check_accessibility(page)
    row.get_by_role("link", name="word-count").click()
    expect(page.get_by_text("Waiting for data to arrive")).to_be_visible()
    drawing = page.locator(".topology svg")
    expect(drawing.locator("g.step")).to_have_count(
        word_count().count("Source:") + word_count().count("Processor:") + word_count().count("Sink:")
    )
    expect(drawing.locator("g.source").first).to_contain_text("lines")
    expect(drawing.locator("g.sink").last).to_contain_text("word-counts")
    expect(drawing.locator("g.stateful")).to_contain_text("counts")
    expect(drawing.locator("path.shuffle").first).to_be_attached()
    expect(drawing).to_contain_text("onerror=window.hacked")
    assert is_harmless(page)
    check_accessibility(page)


def test_no_two_steps_of_the_picture_overlap(page: Page, secured: Console, running: Folder) -> None:
    secured.open(page, "#/pipelines/word-count")
    expect(page.locator(".topology rect").first).to_be_visible()
    boxes = [box for each in page.locator(".topology rect").all() if (box := each.bounding_box()) is not None]
    for one in boxes:
        for other in boxes:
            apart_x = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            apart_y = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            assert one is other or apart_x or apart_y


def test_a_pipeline_is_stopped_and_started_again(page: Page, secured: Console, running: Folder) -> None:
    secured.open(page, "#/pipelines/word-count")
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("word-count is stopping.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop…")).to_have_count(0)
    stopped = running.definition("word-count")
    assert stopped is not None
    assert stopped.wanted is Wanted.STOPPED
    page.get_by_role("button", name="Start…").click()
    page.get_by_role("dialog").get_by_role("button", name="Restart").click()
    expect(page.get_by_role("button", name="Stop…")).to_be_visible()
    started = running.definition("word-count")
    assert started is not None
    assert started.wanted is Wanted.RUNNING
    assert started.generation > stopped.generation


def test_views_fit_a_phone(page: Page, secured: Console, running: Folder) -> None:
    check_fits_a_phone(page, secured, "#/pipelines", "#/pipelines/word-count")


def test_a_console_without_pipelines_has_no_such_view(page: Page, console: Console) -> None:
    console.open(page)
    expect(page.get_by_role("link", name="Groups", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Pipelines")).to_have_count(0)
