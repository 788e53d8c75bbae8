"""The console commands as processes: a prompt, Ctrl-C, Ctrl-D, and a reader that has ended."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.peers.kaspar import KasparProcess
from tests.peers.raw_client import RawClient

SECONDS = 60
PRODUCER = "kaspar.tools.console_producer.command"
CONSUMER = "kaspar.tools.console_consumer.command"
VERIFIABLE_CONSUMER = "kaspar.tools.verifiable.consumer"


def start(module: str, broker: KasparProcess, *words: str, terminal: int | None = None) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", module, "--bootstrap-server", broker.bootstrap, *words]
    stream = subprocess.PIPE if terminal is None else terminal
    return subprocess.Popen(arguments, stdin=stream, stdout=stream, stderr=subprocess.PIPE)


def values(broker: KasparProcess, topic: str) -> list[bytes | None]:
    with RawClient(broker.port) as client:
        return client.read_values(topic)


def fill(broker: KasparProcess, topic: str, lines: list[bytes]) -> None:
    with RawClient(broker.port) as client:
        client.create_topic(topic)
        client.produce(topic, lines)


class Terminal:
    """A producer at a prompt."""

    def __init__(self, broker: KasparProcess, topic: str) -> None:
        self._own, theirs = pty.openpty()
        words = ("--topic", topic, "--timeout", "5")
        self.process = start(PRODUCER, broker, *words, terminal=theirs)
        os.close(theirs)

    def wait_for_prompt(self) -> None:
        shown = b""
        while not shown.endswith(b">"):
            shown += os.read(self._own, 1024)

    def type(self, text: bytes) -> None:
        os.write(self._own, text)

    def finish(self) -> tuple[int, bytes]:
        _, errors = self.process.communicate(timeout=SECONDS)
        os.close(self._own)
        return self.process.returncode, errors


def test_lines_typed_at_a_prompt_until_ctrl_d(broker: KasparProcess) -> None:
    terminal = Terminal(broker, "typed")
    for line in (b"one\n", b"two\n"):
        terminal.wait_for_prompt()
        terminal.type(line)
    terminal.wait_for_prompt()
    terminal.type(b"\x04")
    assert terminal.finish() == (0, b"")
    assert values(broker, "typed") == [b"one", b"two"]


def test_what_was_typed_before_ctrl_c_is_sent(broker: KasparProcess) -> None:
    terminal = Terminal(broker, "interrupted")
    terminal.wait_for_prompt()
    terminal.type(b"one\n")
    terminal.wait_for_prompt()
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == (130, b"")
    assert values(broker, "interrupted") == [b"one"]


def test_many_lines_through_a_pipe(broker: KasparProcess) -> None:
    lines = [b"%d" % number for number in range(100_000)]
    with start(PRODUCER, broker, "--topic", "many") as producer:
        assert producer.communicate(b"\n".join(lines), timeout=SECONDS) == (b"", b"")
    assert producer.returncode == 0
    words = ("--topic", "many", "--partition", "0", "--from-beginning", "--max-messages", "100000")
    with start(CONSUMER, broker, *words) as consumer:
        output, errors = consumer.communicate(timeout=SECONDS)
    assert output.split() == lines
    assert errors == b"Processed a total of 100000 messages\n"


def test_consumer_and_ctrl_c(broker: KasparProcess) -> None:
    fill(broker, "endless", [b"one", b"two"])
    with start(CONSUMER, broker, "--topic", "endless", "--from-beginning") as consumer:
        assert consumer.stdout is not None
        assert [consumer.stdout.readline(), consumer.stdout.readline()] == [b"one\n", b"two\n"]
        consumer.send_signal(signal.SIGINT)
        _, errors = consumer.communicate(timeout=SECONDS)
    assert consumer.returncode == 130
    assert errors.splitlines()[-1] == b"Processed a total of 2 messages"
    assert b"Traceback" not in errors


def test_consumer_whose_reader_has_ended(broker: KasparProcess) -> None:
    fill(broker, "cut", [b"x" * 100] * 5000)
    words = ("--topic", "cut", "--partition", "0", "--from-beginning")
    with start(CONSUMER, broker, *words) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline()
        consumer.stdout.close()
        assert consumer.stderr is not None
        errors = consumer.stderr.read()
        assert consumer.wait(SECONDS) == 0
    assert errors.startswith(b"Unable to write to standard out, closing consumer.\n")
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_verifiable_consumer_and_signals(broker: KasparProcess, number: signal.Signals, code: int) -> None:
    topic = f"signal-{code}"
    fill(broker, topic, [b"one"])
    with start(VERIFIABLE_CONSUMER, broker, "--topic", topic, "--group-id", topic) as consumer:
        assert consumer.stdout is not None
        while b"offsets_committed" not in consumer.stdout.readline():
            pass
        consumer.send_signal(number)
        output, errors = consumer.communicate(timeout=SECONDS)
    names = [line.split(b'"name":"')[1].split(b'"')[0] for line in output.splitlines()]
    assert names == [b"shutdown_requested", b"partitions_revoked", b"shutdown_complete"]
    assert (consumer.returncode, errors) == (code, b"")
