"""Pytest fixtures; pytest finds them once kaspar is installed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kaspar.testing import Broker


@pytest.fixture
def kaspar_broker() -> "Iterator[Broker]":
    """A broker for one test, in this process, with an empty data directory that is removed afterwards."""
    from kaspar.testing import Broker

    with Broker() as broker:
        yield broker
