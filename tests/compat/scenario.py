"""Words that the scenarios share."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from tests.compat.drivers.api import Ability, ClientError, Headers, Received, Record

_EVENTUALLY_SECONDS = 15.0
_POLL_SECONDS = 0.05


class NewTopic(Protocol):
    def __call__(self, *, partitions: int = 1, config: dict[str, str] | None = None) -> str: ...


def needs(*abilities: Ability) -> pytest.MarkDecorator:
    return pytest.mark.needs(*abilities)


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait for what a cluster does not promise at once: a change is acknowledged before every broker has applied it."""
    deadline = time.monotonic() + _EVENTUALLY_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {_EVENTUALLY_SECONDS} s: {what}"
        time.sleep(_POLL_SECONDS)


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
