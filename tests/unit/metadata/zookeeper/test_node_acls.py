"""Who may read and change a node."""

import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kaspar.metadata import layout
from kaspar.metadata.zookeeper.node_acls import acls_of


@pytest.mark.parametrize(
    "path", [layout.SCRAM, f"{layout.SCRAM}/alice", layout.TOKENS, layout.BROKER_CONFIGS, "/quotas/x"]
)
def test_secrets_are_for_brokers_alone(path: str) -> None:
    assert acls_of(path, is_secure=True) == CREATOR_ALL_ACL
    assert acls_of(path, is_secure=False) == OPEN_ACL_UNSAFE


@pytest.mark.parametrize(
    "path", ["/", "/scrambled", layout.ACLS, layout.FENCE, layout.CONTROLLER_SEAT, "/topics/configs"]
)
def test_everybody_reads_what_has_no_secrets(path: str) -> None:
    assert acls_of(path, is_secure=True) == CREATOR_ALL_ACL + READ_ACL_UNSAFE
