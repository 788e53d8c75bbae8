"""The demo's screen: in place on a terminal, and whole lines for a pipe."""

import sys
import threading

import pytest

from kaspar.demo.screen import Heading, Screen


@pytest.fixture
def screen() -> Screen:
    return Screen(threading.Event(), None)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "11")
    monkeypatch.setenv("LINES", "5")


@pytest.mark.usefixtures("terminal")
class TestTerminal:
    def test_lines_replace_those_drawn_before(self, screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
        screen.draw(["one", "two"], "")
        screen.draw(["three"], "")
        assert capsys.readouterr().out == "one\x1b[K\ntwo\x1b[K\n" + "\x1b[2Athree\x1b[K\n\x1b[K\n"

    def test_lines_are_cut_to_the_width_and_headings_are_bold(
        self, screen: Screen, capsys: pytest.CaptureFixture[str]
    ) -> None:
        screen.draw([Heading("a heading that is long")], "")
        assert capsys.readouterr().out == "\x1b[1ma heading \x1b[0m\x1b[K\n"

    def test_no_more_lines_are_drawn_than_fit(self, screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
        screen.draw([str(number) for number in range(9)], "")
        assert capsys.readouterr().out.count("\n") == screen.rows == 4


def test_elsewhere_a_line_is_printed_when_it_has_changed(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("waiting", "waiting", "running"):
        screen.draw(["not shown"], line)
    assert capsys.readouterr().out == "waiting\nrunning\n"


def test_time_that_is_up_ends_the_ticks() -> None:
    assert len(list(Screen(threading.Event(), 0.01).ticks())) == 1
