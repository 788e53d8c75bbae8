"""What people and Prometheus see of pipelines."""

import io
import re
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kaspar.base.errors import KasparError
from kaspar.pipelines.display import Display
from kaspar.pipelines.lines import age, byte_size, state_size, status_line
from kaspar.pipelines.metrics import metrics_page
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineStatus, State

PROGRESS = PipelineProgress(
    input_rows_per_second=1234.4,
    processed_rows_per_second=9000.0,
    lag=12,
    batch_ms=85,
    state_rows=7,
    state_bytes=12_345_678,
    stream_time_ms=1_500,
    written=20,
    dropped={"late": 3, "processing": 1},
)
RUNNING = PipelineStatus("counts", State.RUNNING, 0, progress=PROGRESS)
FAILING = PipelineStatus("orders", State.RESTARTING, 0, restarts=2, reason="ValueError: boom", failed_ms=0)


def words(text: str) -> str:
    return " ".join(text.split())


def test_line_of_a_running_pipeline_has_its_figures() -> None:
    line = words(status_line(RUNNING))
    figures = "counts: running in 1,234 rows/s done 9,000 rows/s 85 ms a batch lag 12 state 12.3 MB "
    assert line.startswith(figures)
    assert re.fullmatch(r"dropped 4 at 19(69|70)-\d\d-\d\d \d\d:\d\d:01", line.removeprefix(figures))


def test_line_of_a_failing_pipeline_has_the_reason() -> None:
    assert words(status_line(FAILING)) == "orders: restarting: ValueError: boom 2 restarts"


def test_line_without_figures_has_the_state() -> None:
    assert status_line(PipelineStatus("a", State.RUNNING, 0, restarts=1, reason="old")) == "a: running   1 restart"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (5_300_000_000, "5.3 GB"), (10**16, "10000.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert byte_size(count) == text


def test_state_is_bytes_or_rows() -> None:
    assert state_size(PipelineProgress(state_rows=4321)) == "4,321 rows"
    assert state_size(PipelineProgress()) == "-"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3700, "1 h 1 min"), (90000, "1 d 1 h")]
)
def test_ages(seconds: int, text: str) -> None:
    assert age(seconds * 1000) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_updated_in_place_on_a_terminal() -> None:
    out = Terminal()
    display = Display(out)
    display.show([RUNNING, FAILING])
    display.say("The host starts again.")
    display.show([RUNNING])
    text = out.getvalue()
    assert text.startswith("orders: failed: ValueError: boom\x1b[K\n")  # which stays
    assert text.count("counts: running") == 3  # drawn, drawn again below the sentence, and once more
    assert text.count("\x1b[2A") == 2
    assert text.endswith("\x1b[J")


def test_changes_are_printed_elsewhere() -> None:
    out = io.StringIO()
    display = Display(out)
    for statuses in ([RUNNING], [RUNNING], [RUNNING, FAILING], [RUNNING, FAILING], [RUNNING]):
        display.show(statuses)
    assert [words(line)[:22] for line in out.getvalue().splitlines()] == [
        "counts: running in 1,2",
        "orders: failed: ValueE",
    ]


def test_reason_of_a_failure_is_said_also_if_it_is_over() -> None:
    out = io.StringIO()
    display = Display(out)
    display.show([RUNNING])
    display.show([replace(RUNNING, restarts=1, reason="boom", progress=PipelineProgress())])
    assert out.getvalue().splitlines()[1:] == ["counts: failed: boom", "counts: running   1 restart"]


def test_output_that_nobody_reads_disturbs_nothing() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Display(Closed()).show([RUNNING])
    Display(Closed()).say("x")


def test_metrics_page() -> None:
    page = metrics_page("127.0.0.1:0", lambda: [RUNNING, FAILING])
    page.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=10) as response:
            text = response.read().decode()
    finally:
        page.stop()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["kaspar_pipeline_state", "counts", "running"] == 1
    assert found["kaspar_pipeline_state", "orders", "running"] == 0
    assert found["kaspar_pipeline_state", "orders", "restarting"] == 1
    assert found["kaspar_pipeline_restarts_total", "orders"] == 2
    assert found["kaspar_pipeline_input_rows_per_second", "counts"] == 1234.4
    assert found["kaspar_pipeline_lag", "counts"] == 12
    assert found["kaspar_pipeline_batch_seconds", "counts"] == 0.085
    assert found["kaspar_pipeline_state_bytes", "counts"] == 12_345_678
    assert found["kaspar_pipeline_stream_time_seconds", "counts"] == 1.5
    assert found["kaspar_pipeline_written_records_total", "counts"] == 20
    assert found["kaspar_pipeline_dropped_records_total", "counts", "late"] == 3
    assert found["kaspar_pipeline_dropped_records_total", "counts", "processing"] == 1
    assert ("kaspar_pipeline_lag", "orders") not in found


def test_address_of_the_metrics_page_is_checked() -> None:
    with pytest.raises(KasparError, match="must be host:port, not 'here'"):
        metrics_page("here", list)
