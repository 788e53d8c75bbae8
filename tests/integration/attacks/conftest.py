"""One target for all attacks. After each of them it still serves, and has met no bug."""

from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode
from tests.integration.attacks.target import PASSWORDS, TOPIC, Guest, Target, add_scram_users


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Target(tmp_path_factory.mktemp("target")) as broker:
        with broker.client() as admin:
            assert admin.create_topic(TOPIC) == 0
            assert set(add_scram_users(admin, PASSWORDS)) == {0}
        yield broker


@pytest.fixture(scope="module")
def honest_client(running: Target) -> Iterator[Guest]:
    """One that was there before the attacks of a module, and is not disturbed by them."""
    with running.client() as client:
        yield client
    running.still_serves()


@pytest.fixture
def target(running: Target, honest_client: Guest) -> Iterator[Target]:
    yield running
    assert honest_client.produce(TOPIC, [b"not disturbed"]).error_code == ErrorCode.NONE
    assert running.unexpected_errors() == []
