"""Messages on stderr: not on the screen, unless the demo fails."""

import os

import pytest

from kaspar.demo.quiet import quiet_stderr


def test_messages_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_stderr():
        os.write(2, b"a message\n")
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"


def test_the_last_messages_are_shown_when_the_block_fails(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with quiet_stderr():
            os.write(2, b"x" * 10_000 + b" the reason\n")
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fail()
    shown = capfd.readouterr().err
    assert shown.endswith("x the reason\n")
    assert len(shown) == 4000
