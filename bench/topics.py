"""Topics of a broker under test: creating them, and removing them with all their files."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from bench import programs
from tests.peers.process import BrokerProcess
from tests.peers.wire import leads

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.02
_ERRORS_ONLY = 3  # of syslog's levels
_numbers = itertools.count(1)


class Topics:
    """One admin client. It is connected as long as this object exists, so keep it only as long as necessary."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": _ERRORS_ONLY})
        self._admin.list_topics(timeout=_TIMEOUT_SECONDS)  # connects now, so that no measurement includes it

    def create(self, partitions: int, name: str | None = None, config: Mapping[str, str] | None = None) -> str:
        """Create a topic. Returns when the broker leads every partition; Kafka responds before that."""
        name = name or f"bench{next(_numbers)}"
        self.start_to_create(name, partitions, config)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not leads(self._broker.host, self._broker.port, name, range(partitions)):
            if time.monotonic() > deadline:
                raise programs.LoadError(f"a new topic had no leaders after {_TIMEOUT_SECONDS} s")
            time.sleep(_POLL_SECONDS)
        return name

    def start_to_create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic. Returns when the broker has responded."""
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        self._admin.create_topics([topic], request_timeout=_TIMEOUT_SECONDS)[name].result()

    def set(self, name: str, setting: str, value: str) -> None:
        """Change one of the topic's settings."""
        change = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[change])
        self._admin.incremental_alter_configs([resource], request_timeout=_TIMEOUT_SECONDS)[resource].result()

    def delete(self, name: str) -> None:
        """Delete the topic, and wait until its files are removed, so that later measurements are not affected."""
        self._admin.delete_topics([name], request_timeout=_TIMEOUT_SECONDS)[name].result()
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while any(self._broker.data_dir.glob(f"{name}-*")):
            if time.monotonic() > deadline:
                raise programs.LoadError(f"the files of a deleted topic were still there after {_TIMEOUT_SECONDS} s")
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def temporary(self, partitions: int) -> Iterator[str]:
        name = self.create(partitions)
        yield name
        self.delete(name)


def topic_bytes(broker: BrokerProcess, name: str) -> int:
    """How many bytes the topic's segments hold."""
    return sum(segment.stat().st_size for segment in broker.data_dir.glob(f"{name}-*/*.log"))
