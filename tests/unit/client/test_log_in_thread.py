"""The thread in which log-ins wait."""

import threading
from concurrent.futures import CancelledError

import pytest

from kaspar.client.log_in_thread import LogInThread


def test_work_is_done_in_order_and_what_is_cancelled_is_not() -> None:
    thread, gate, done = LogInThread(), threading.Event(), list[str]()
    first = thread.submit(gate.wait, 30)
    second, third = thread.submit(done.append, "second"), thread.submit(done.append, "third")
    assert second.cancel()
    gate.set()
    third.result(30)
    assert first.result(30)
    assert done == ["third"]
    with pytest.raises(CancelledError):
        second.result(30)


def test_an_exception_is_the_callers() -> None:
    thread = LogInThread()
    with pytest.raises(ValueError, match="invalid literal"):
        thread.submit(int, "x").result(30)
    assert thread.submit(int, "7").result(30) == 7


def test_the_process_may_end_while_it_waits() -> None:
    thread = LogInThread()
    assert thread.submit(lambda: threading.current_thread().daemon).result(30)
