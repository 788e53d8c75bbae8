"""Words that the scenarios share."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from tests.compat.drivers.api import Ability, ClientError, Headers, Received, Record, at_offset
from tests.peers.brokers import Brokers

# The start of a new topic. librdkafka asks for the offset of its logical "beginning" only every 500 ms.
FIRST = at_offset(0)

_EVENTUALLY_SECONDS = 15.0
_POLL_SECONDS = 0.05


class NewTopic(Protocol):
    def __call__(self, *, partitions: int = 1, config: dict[str, str] | None = None) -> str: ...


def needs(*abilities: Ability) -> pytest.MarkDecorator:
    return pytest.mark.needs(*abilities)


def eventually(
    condition: Callable[[], bool], what: str | Callable[[], str], *, seconds: float = _EVENTUALLY_SECONDS
) -> None:
    """Wait for what a cluster does not promise at once: a change is acknowledged before every broker has applied it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what if isinstance(what, str) else what()}"
        time.sleep(_POLL_SECONDS)


def wait_for_leaders(broker: Brokers, topic: str, partitions: Sequence[int]) -> None:
    """Kafka acknowledges new partitions before they take records; some clients then retry more than they must."""
    seconds = _EVENTUALLY_SECONDS + len(partitions) / 50  # Kafka makes some hundred a second on a busy machine
    eventually(lambda: broker.lead(topic, partitions), f"{topic} has leaders", seconds=seconds)


def refusal(call: Callable[[], object]) -> str:
    """The name of the error with which a call fails."""
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.code


Content = tuple[bytes | None, bytes | None, Headers]


def sent(records: Sequence[Record]) -> list[Content]:
    return [(record.key, record.value, record.headers) for record in records]


def came(records: Sequence[Received]) -> list[Content]:
    return [(record.key, record.value, record.headers) for record in records]
