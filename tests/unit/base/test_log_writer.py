"""Log lines are written by a thread: in order, bounded, and lost lines are reported."""

import io
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kaspar.base import log_writer
from kaspar.base.log import TextFormatter
from kaspar.base.log_writer import LogWriter

PATIENCE_S = 30.0


class Pipe(io.StringIO):
    """Takes lines only while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.full = False

    def write(self, text: str) -> int:
        self.open.wait(PATIENCE_S)
        if self.full:
            raise OSError("no space left")
        return super().write(text)


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


@pytest.fixture
def logger(pipe: Pipe) -> Iterator[logging.Logger]:
    target = logging.StreamHandler(pipe)
    target.setFormatter(TextFormatter())
    logger = logging.Logger("test")
    logger.addHandler(LogWriter(target))
    yield logger
    pipe.open.set()
    writer_of(logger).close()


def writer_of(logger: logging.Logger) -> LogWriter:
    (writer,) = logger.handlers
    assert isinstance(writer, LogWriter)
    return writer


def test_caller_does_not_wait_for_a_pipe_without_a_reader(logger: logging.Logger, pipe: Pipe) -> None:
    for number in range(3):
        logger.info("line %d", number)
    logger.error("an error waits for a moment only")
    logger.error("and this one not at all")
    assert pipe.getvalue() == ""

    pipe.open.set()
    assert writer_of(logger).wait(PATIENCE_S)
    assert [line.split(" ", 3)[3].rpartition(" ")[0] for line in pipe.getvalue().splitlines()] == [
        "line 0",
        "line 1",
        "line 2",
        "an error waits for a moment only",
        "and this one not at all",
    ]


def test_an_error_is_written_when_the_call_returns(logger: logging.Logger, pipe: Pipe) -> None:
    pipe.open.set()
    logger.info("first")
    logger.error("second")
    assert [line.split()[3] for line in pipe.getvalue().splitlines()] == ["first", "second"]


def test_what_finds_no_room_is_counted_and_said(
    logger: logging.Logger, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MAX_WAITING_CHARACTERS", 200)
    for _ in range(10):
        logger.info("a line of some length, so that few of them have room")
    lost = writer_of(logger).lost
    assert 0 < lost < 10

    pipe.open.set()
    assert writer_of(logger).wait(PATIENCE_S)
    # In two parts, if the writer took the first line after some were lost.
    parts = re.findall(r"log lines were lost: they could not be written fast enough lines=(\d+)", pipe.getvalue())
    assert sum(map(int, parts)) == lost
    assert pipe.getvalue().count("a line of some length") == 10 - lost


def test_what_a_full_disk_does_not_take_is_counted_and_said(logger: logging.Logger, pipe: Pipe) -> None:
    pipe.full = True
    pipe.open.set()
    logger.info("lost")
    assert writer_of(logger).wait(PATIENCE_S)
    assert writer_of(logger).lost == 1
    pipe.full = False
    logger.info("there is room again")
    assert writer_of(logger).wait(PATIENCE_S)
    assert "lines=1" in pipe.getvalue()


@pytest.mark.parametrize("ending", ["", "raise SystemError", "sys.exit(3)"])
def test_what_waits_is_written_when_the_process_ends(ending: str) -> None:
    program = f"""
import sys
from kaspar.base import log
log.configure()
for number in range(1000):
    log.get_log("kaspar.test").info("a line", number=number)
{ending}
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert run.stderr.count("a line number=") == 1000
