"""kcat as a member of a group: a process for each consumer, which prints its assignment on standard error."""

import re
import signal
import subprocess
import threading
from typing import IO

from tests.compat.clients.api import (
    ConsumerOptions,
    Partition,
)
from tests.compat.clients.python.sessions import GroupConsumer, Library, Row
from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS, ClientError
from tests.compat.drivers.kcat import named_error
from tests.peers.kcat import kcat_path

_FORMAT = r"%t %p %o %s\n"
_EAGER = re.compile(r"^% Group .* rebalanced \(.*\): (assigned|revoked): ?(.*)$")
_COOPERATIVE = re.compile(r"^% Group .* rebalanced: incremental (assignment|revoke) of [^:]*: ?(.*)$")
_NO_OFFSET = "No offset stored"
_PARTITION = re.compile(r"(\S+) \[(\d+)\]")


class KcatConsumer(GroupConsumer):
    def __init__(self, bootstrap: str, options: ConsumerOptions) -> None:
        words = [word for name, value in _settings(options).items() for word in ("-X", f"{name}={value}")]
        topics = [options.pattern] if options.pattern is not None else list(options.topics)
        self._process = subprocess.Popen(
            [kcat_path(), "-b", bootstrap, *words, "-u", "-f", _FORMAT, "-G", options.group, *topics],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._rows: list[Row] = []
        self._assignment: set[Partition] = set()
        self._printed: list[str] = []
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        threading.Thread(target=self._read_records, args=(self._process.stdout,), daemon=True).start()
        threading.Thread(target=self._read_news, args=(self._process.stderr,), daemon=True).start()

    def poll(self) -> list[Row]:
        try:
            self._process.wait(0.1)
        except subprocess.TimeoutExpired:
            rows, self._rows = self._rows, []
            return rows
        printed = "\n".join(self._printed)
        code = "NO_OFFSET" if _NO_OFFSET in printed else named_error(printed)
        raise ClientError(code or "KCAT_ENDED", printed)

    def assignment(self) -> set[Partition]:
        return set(self._assignment)

    def close(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(CALL_TIMEOUT_SECONDS)

    def _read_records(self, lines: IO[str]) -> None:
        for line in lines:
            topic, partition, offset, value = line.rstrip("\n").split(" ", 3)
            self._rows.append((topic, int(partition), int(offset), value))

    def _read_news(self, lines: IO[str]) -> None:
        for line in lines:
            self._printed.append(line.rstrip())
            news = _EAGER.match(line) or _COOPERATIVE.match(line)
            if news is not None:
                self._rebalanced(news[1], {(topic, int(number)) for topic, number in _PARTITION.findall(news[2])})

    def _rebalanced(self, what: str, partitions: set[Partition]) -> None:
        match what:
            case "assigned":
                self.rebalances += 1
                self._assignment = partitions
            case "assignment":
                self.rebalances += 1
                self._assignment = self._assignment | partitions
            case _:
                self._assignment = self._assignment - partitions


class KcatLibrary(Library):
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def consumer(self, options: ConsumerOptions) -> GroupConsumer:
        return KcatConsumer(self._bootstrap, options)

    def error_name(self, error: Exception) -> str:
        return error.code if isinstance(error, ClientError) else type(error).__name__


def _settings(options: ConsumerOptions) -> dict[str, object]:
    settings: dict[str, object] = {
        "auto.offset.reset": "error" if options.reset == "none" else options.reset,
        "enable.auto.commit": str(options.auto_commit).lower(),
        "auto.commit.interval.ms": options.auto_commit_interval_ms,
        "isolation.level": options.isolation,
        "session.timeout.ms": options.session_timeout_ms,
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
        "topic.metadata.refresh.interval.ms": options.metadata_max_age_ms,
    }
    if options.assignor is not None:
        settings["partition.assignment.strategy"] = options.assignor
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    return settings


def library(bootstrap: str) -> Library:
    return KcatLibrary(bootstrap)
