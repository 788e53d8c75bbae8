"""Commands about groups, transactions and the cluster as processes: exit codes, a reader that has ended, and Ctrl-C."""

from collections.abc import Iterator

import pytest

from tests.integration.tools.processes import interrupt, read_by_nobody
from tests.peers.kaspar import KasparProcess

COMMANDS = {
    "kaspar.tools.consumer_groups.command": ("--bootstrap-server", "ADDRESS", "--list", "--state"),
    "kaspar.tools.groups": ("--bootstrap-server", "ADDRESS", "--list"),
    "kaspar.tools.transactions.command": ("--bootstrap-server", "ADDRESS", "list"),
    "kaspar.tools.cluster": ("cluster-id", "--bootstrap-server", "ADDRESS"),
    "kaspar.tools.features": ("--bootstrap-server", "ADDRESS", "describe"),
    "kaspar.tools.metadata_quorum": ("--bootstrap-server", "ADDRESS", "describe", "--status"),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.mark.parametrize("module", COMMANDS)
def test_ctrl_c(module: str) -> None:
    assert interrupt(module, *COMMANDS[module]) == (130, "")


@pytest.mark.parametrize("module", COMMANDS)
def test_the_reader_has_ended(broker: KasparProcess, module: str) -> None:
    words = [broker.bootstrap if word == "ADDRESS" else word for word in COMMANDS[module]]
    assert read_by_nobody(module, *words) == (1, "")
