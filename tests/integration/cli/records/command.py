"""Runs `kaspar` in this process, which costs milliseconds, or in one of its own, where signals and pipes are real."""

import io
import itertools
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from kaspar.cli.main import main


class Done(NamedTuple):
    code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


class Kaspar:
    """The command `kaspar`, with a cluster that it talks to."""

    _numbers = itertools.count(1)

    def __init__(self, servers: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.servers = servers
        self._capfd = capfd
        self._monkeypatch = monkeypatch

    def name_of(self, what: str) -> str:
        """A name for a topic or group that no other test has."""
        return f"{what}-{next(self._numbers):04}"

    def new_topic(self, what: str, *, partitions: int = 1) -> str:
        from kaspar.base.errors import Refused
        from kaspar.cli.topic_creation import wait_until_online
        from kaspar.client.admin.creation import NewTopic, create_topics
        from kaspar.client.admin.session import Admin

        name = self.name_of(what)
        with Admin(self.servers) as admin:
            result = create_topics(admin, [NewTopic(name, partitions, 1)])[name]
            assert not isinstance(result, Refused), result
            wait_until_online(admin, name)
        return name

    def run(self, *words: str, stdin: str | bytes = b"") -> Done:
        """Never with a traceback."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._capfd.readouterr()
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            patch.setenv("KASPAR_BOOTSTRAP_SERVER", self.servers)
            code = main(list(words))
        done = Done(code, *self._capfd.readouterr())
        assert "Traceback" not in done.errors
        return done

    def ok(self, *words: str, stdin: str | bytes = b"") -> Done:
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, done.errors
        return done

    def write(self, *words: str, stdin: str | bytes = b"") -> Done:
        """`kaspar produce` where it is not what is tested: quicker, since librdkafka waits half a second before it asks
        for the producer id of an idempotent producer."""
        return self.ok("produce", *words, "-X", "enable.idempotence=false", stdin=stdin)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A process of its own, with pipes for all three streams."""
        return subprocess.Popen(
            [sys.executable, "-m", "kaspar.cli.main", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "KASPAR_BOOTSTRAP_SERVER": self.servers},
        )
