"""Both forms of confluent-kafka-python's client."""

from collections.abc import Callable, Iterator

import pytest

from tests.compat.registry.python.flavours import FLAVOURS, Flavour
from tests.integration.registry.instances import Registry


@pytest.fixture(scope="session")
def flavours(registry: Registry) -> Iterator[Callable[[str], Flavour]]:
    """By name, each made once: a client of httpx takes its time to start."""
    made: dict[str, Flavour] = {}

    def flavour(name: str) -> Flavour:
        if name not in made:
            made[name] = FLAVOURS[name](registry.url)
        return made[name]

    yield flavour
    for each in made.values():
        each.close()


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest, url: str, flavours: Callable[[str], Flavour]) -> Flavour:
    made = flavours(request.param)
    made.client.clear_caches()
    return made
