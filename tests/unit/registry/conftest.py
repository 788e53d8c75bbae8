from collections.abc import Iterator

import pytest

from tests.unit.registry.memory import MemoryRegistry


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    with MemoryRegistry() as registry:
        yield registry
