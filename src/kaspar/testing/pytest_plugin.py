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


@pytest.fixture
def kaspar_broker_with_registry() -> "Iterator[Broker]":
    """The same as `kaspar_broker`, with a schema registry at its `registry_url`. Needs kaspar[registry]."""
    from kaspar.testing import Broker

    with Broker(registry=True) as broker:
        yield broker
