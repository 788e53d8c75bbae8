"""The demo's screen: in place on a terminal, and whole lines for a pipe."""

import io
import threading

import pytest

from kaspar.demo.screen import Heading, Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "11")
    monkeypatch.setenv("LINES", "5")


def drawn(*drawings: list[str]) -> str:
    out = Terminal()
    screen = Screen(threading.Event(), None, out)
    for lines in drawings:
        screen.draw(lines, "not shown")
    return out.getvalue()


def test_lines_replace_those_drawn_before() -> None:
    assert drawn(["one", "two"], ["three"]) == "one\x1b[K\ntwo\x1b[K\n" + "\x1b[2Athree\x1b[K\n\x1b[K\n"


def test_lines_are_cut_to_the_width_and_headings_are_bold() -> None:
    assert drawn([Heading("a heading that is long")]) == "\x1b[1ma heading \x1b[0m\x1b[K\n"


def test_no_more_lines_are_drawn_than_fit() -> None:
    assert drawn([str(number) for number in range(9)]).count("\n") == 4


def test_elsewhere_a_line_is_printed_when_it_has_changed() -> None:
    out = io.StringIO()
    screen = Screen(threading.Event(), None, out)
    for line in ("waiting", "waiting", "running"):
        screen.draw(["not shown"], line)
    assert out.getvalue() == "waiting\nrunning\n"


def test_time_that_is_up_ends_the_ticks() -> None:
    assert len(list(Screen(threading.Event(), 0.01, io.StringIO()).ticks())) == 1
