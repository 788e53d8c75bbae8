"""One broker for all tests of this folder, whose groups elect without delay."""

from collections.abc import Iterator

import pytest

from tests.integration.registry.instances import QUICK_GROUPS
from tests.peers.kaspar import KasparProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    overrides = {**QUICK_GROUPS, "log.cleaner.backoff.ms": "100"}
    with KasparProcess(tmp_path_factory.mktemp("broker"), overrides=overrides) as process:
        yield process


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """A topic and a group of the test's own."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return {"kafkastore.topic": f"_schemas-{name}"[:200], "schema.registry.group.id": name[:200]}
