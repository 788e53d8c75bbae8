"""The control socket: requests and responses, their bounds, and who may connect."""

import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from kaspar.base.errors import KasparError
from kaspar.pipelines import control
from kaspar.pipelines.control import MOST_CONNECTIONS, ControlServer, NoHost, ask
from kaspar.pipelines.messages import (
    LARGEST_REQUEST,
    ApplyChanges,
    Described,
    DescribePipeline,
    Failure,
    ListPipelines,
    Pipelines,
    Request,
    Response,
    decode_request,
    decode_response,
    encode,
)
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, QueryStatus, State

STATUS = PipelineStatus("app", State.RUNNING, 5, 2, "because", 4, PipelineProgress(lag=3, batch_ms=7))


@contextmanager
def served(path: Path, respond: Callable[[Request], Response]) -> Iterator[Path]:
    server = ControlServer(path, respond)
    try:
        yield path
    finally:
        server.close()


@pytest.mark.parametrize("request_", [ListPipelines(), DescribePipeline("app"), ApplyChanges(("a", "b"), 1.5)])
def test_requests_are_lines(request_: Request) -> None:
    line = encode(request_)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_request(line) == request_


@pytest.mark.parametrize(
    "response",
    [
        Pipelines((STATUS,), True, ("b",)),
        Described(PipelineDetails(STATUS, "app.py", ("x",), "log", (QueryStatus("q", "1", True, "busy"),), "text\n")),
        Failure("no"),
    ],
)
def test_responses_are_lines(response: Response) -> None:
    line = encode(response)
    assert line.count(b"\n") == 1
    assert decode_response(line) == response


@pytest.mark.parametrize("line", [b"", b"{}", b'{"type": "other"}', b"[1", b'{"type": "describe"}'])
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_request(line)


def test_request_is_responded_to(tmp_path: Path) -> None:
    def respond(request: Request) -> Response:
        assert request == ListPipelines()
        return Pipelines((STATUS,), True)

    with served(tmp_path / "s", respond) as path:
        assert ask(path, ListPipelines(), Pipelines).statuses == (STATUS,)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_folder_may_have_a_long_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    with served(deep / "s", lambda request: Pipelines((), False)) as path:
        assert not ask(path, ListPipelines(), Pipelines).is_ready


def test_refusal_is_a_sentence(tmp_path: Path) -> None:
    def respond(request: Request) -> Response:
        raise KasparError("there is no pipeline x")

    with served(tmp_path / "s", respond) as path, pytest.raises(KasparError, match="there is no pipeline x"):
        ask(path, DescribePipeline("x"), Described)


def test_bug_of_the_host_is_a_sentence_too(tmp_path: Path) -> None:
    def respond(request: Request) -> Response:
        raise ZeroDivisionError("by zero")

    with served(tmp_path / "s", respond) as path, pytest.raises(KasparError, match="failed to respond: by zero"):
        ask(path, ListPipelines(), Pipelines)


def test_without_a_host(tmp_path: Path) -> None:
    with pytest.raises(NoHost, match="no host is running in"):
        ask(tmp_path / "s", ListPipelines(), Pipelines)
    with socket.socket(socket.AF_UNIX) as left:  # of a host that was killed
        left.bind(str(tmp_path / "s"))
    with pytest.raises(NoHost, match="no host is running in"):
        ask(tmp_path / "s", ListPipelines(), Pipelines)


def test_socket_of_a_killed_host_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    with served(tmp_path / "s", lambda request: Pipelines((), True)) as path:
        assert ask(path, ListPipelines(), Pipelines).is_ready


def test_host_that_does_not_respond(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        with pytest.raises(NoHost, match=r"did not respond within 0\.05 s"):
            ask(tmp_path / "s", ListPipelines(), Pipelines, timeout_s=0.05)


def test_endless_request_is_refused(tmp_path: Path) -> None:
    with served(tmp_path / "s", lambda request: Pipelines((), True)) as path, connected(path) as client:
        client.sendall(b"x" * (LARGEST_REQUEST + 1))
        assert isinstance(decode_response(client.makefile("rb").readline()), Failure)


def test_slow_request_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "REQUEST_TIMEOUT_S", 0.05)
    with served(tmp_path / "s", lambda request: Pipelines((), True)) as path, connected(path) as client:
        client.sendall(b'{"type"')
        assert client.recv(100) == b""


def test_connections_are_bounded(tmp_path: Path) -> None:
    with served(tmp_path / "s", lambda request: Pipelines((), True)) as path:
        idle = [socket.socket(socket.AF_UNIX) for _ in range(MOST_CONNECTIONS)]
        try:
            for client in idle:
                client.connect(str(path))
            with pytest.raises(NoHost):
                ask(path, ListPipelines(), Pipelines)
        finally:
            for client in idle:
                client.close()


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        yield client
