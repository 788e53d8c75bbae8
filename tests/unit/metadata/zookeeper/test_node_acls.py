"""Who may read and change a node."""

import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kaspar.metadata.layout import store_paths
from kaspar.metadata.zookeeper.node_acls import acls_of


@pytest.mark.parametrize(
    "path",
    [store_paths.SCRAM, f"{store_paths.SCRAM}/alice", store_paths.TOKENS, store_paths.BROKER_CONFIGS, "/quotas/x"],
)
def test_secrets_are_for_brokers_alone(path: str) -> None:
    assert acls_of(path, is_secure=True) == CREATOR_ALL_ACL
    assert acls_of(path, is_secure=False) == OPEN_ACL_UNSAFE


@pytest.mark.parametrize(
    "path", ["/", "/scrambled", store_paths.ACLS, store_paths.FENCE, store_paths.CONTROLLER_SEAT, "/topics/configs"]
)
def test_everybody_reads_what_has_no_secrets(path: str) -> None:
    assert acls_of(path, is_secure=True) == CREATOR_ALL_ACL + READ_ACL_UNSAFE
