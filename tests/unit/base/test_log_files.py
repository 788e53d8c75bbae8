"""A log file is renamed when it is large or a new period begins, and survives what others do to it."""

import errno
import logging
import os
import threading
from pathlib import Path

import pytest

from kaspar.base.log import TextFormatter
from kaspar.base.log_files import LOOK_AGAIN_S, RotatingFile, Rotation, renamed_files
from kaspar.base.log_writer import LogWriter

DAY_S = 24 * 60 * 60
SMALL = Rotation(max_bytes=30, period_s=0, kept=2)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_large_file_is_renamed_and_only_the_newest_are_kept(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    other = tmp_path / "server.log.of-someone-else"
    other.write_text("not ours")
    file = RotatingFile(path, SMALL, now=clock)
    for number in range(5):
        file.write(f"line {number} of twenty bytes\n")
        clock.now += 1
    assert path.read_text() == "line 4 of twenty bytes\n"
    assert [each.read_text()[:6] for each in renamed_files(path)] == ["line 2", "line 3"]
    assert other.exists()


def test_files_renamed_within_one_second_keep_their_order(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, Rotation(max_bytes=5, period_s=0, kept=20), now=clock)
    for number in range(12):
        file.write(f"{number:04}\n")
    assert [each.read_text() for each in renamed_files(path)] == [f"{number:04}\n" for number in range(11)]


def test_none_may_be_kept(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, Rotation(max_bytes=5, period_s=0, kept=0), now=clock)
    for number in range(3):
        file.write(f"{number:04}\n")
    assert [path] == list(tmp_path.iterdir())
    assert path.read_text() == "0002\n"


def test_a_line_longer_than_a_file_may_be_is_written_whole(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    RotatingFile(path, SMALL, now=clock).write("x" * 100 + "\n")
    assert path.read_text() == "x" * 100 + "\n"
    assert not renamed_files(path)


def test_a_new_day_begins_a_new_file_also_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    daily = Rotation(period_s=DAY_S)
    file = RotatingFile(path, daily, now=clock)
    file.write("today\n")
    os.utime(path, (clock.now, clock.now))
    file.close()
    clock.now += DAY_S
    file = RotatingFile(path, daily, now=clock)
    file.write("tomorrow\n")
    clock.now += 60
    file.write("a minute later\n")
    assert [each.read_text() for each in renamed_files(path)] == ["today\n"]
    assert path.read_text() == "tomorrow\na minute later\n"


def test_an_empty_file_is_not_renamed(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, Rotation(period_s=DAY_S), now=clock)
    clock.now += 3 * DAY_S
    file.write("the first line\n")
    assert not renamed_files(path)


@pytest.mark.parametrize("moved_by", ["a rename", "a removal"])
def test_a_file_that_another_program_takes_away_is_reopened(tmp_path: Path, clock: Clock, moved_by: str) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, now=clock)
    file.write("before\n")
    if moved_by == "a rename":
        path.rename(tmp_path / "server.log.1")
    else:
        path.unlink()
    clock.now += LOOK_AGAIN_S
    file.write("after\n")
    assert path.read_text() == "after\n"


def test_a_file_that_another_program_truncates_goes_on_at_its_beginning(tmp_path: Path, clock: Clock) -> None:
    """As logrotate's copytruncate does: no hole is left, and the size is that of the new beginning."""
    path = tmp_path / "server.log"
    file = RotatingFile(path, SMALL, now=clock)
    file.write("as long as a file may be....\n")
    os.truncate(path, 0)
    clock.now += LOOK_AGAIN_S
    file.write("after\n")
    assert path.read_bytes() == b"after\n"
    assert not renamed_files(path)


def test_a_file_that_cannot_be_renamed_is_still_written(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, SMALL, now=clock)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "not allowed")

    monkeypatch.setattr(os, "rename", refuse)
    for _ in range(3):
        file.write("a line of 20 bytes..\n")
    assert path.read_text().count("\n") == 3


def test_a_line_that_a_full_disk_has_cut_is_ended_before_the_next(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    file = RotatingFile(path, now=clock)
    write, room = os.write, [4]

    def with_room(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", with_room)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            file.write("cut in the middle\n")
    room[0] = 100
    file.write("whole\n")
    assert path.read_text() == "cut \nwhole\n"


def test_a_log_survives_a_full_disk_and_says_what_was_lost(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    handler = logging.StreamHandler(RotatingFile(path, now=clock))
    handler.setFormatter(TextFormatter())
    writer = LogWriter(handler)
    logger = logging.Logger("test")
    logger.addHandler(writer)
    full, write = threading.Event(), os.write

    def maybe_full(descriptor: int, data: bytes) -> int:
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", maybe_full)
    full.set()
    for number in range(3):
        logger.info("lost %d", number)
    assert writer.wait(30)
    full.clear()
    logger.info("there is room again")
    assert writer.wait(30)
    text = path.read_text()
    assert "there is room again" in text
    assert "lines=3" in text
    assert "lost 1" not in text
    writer.close()
