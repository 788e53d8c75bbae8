"""Quotas, ACLs and users of a real broker, with and without the right to see them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from kaspar.acls.acl import AclOperation
from kaspar.base.errors import ErrorCode, Refused
from kaspar.callers.permissions import cluster_operations, require_cluster
from kaspar.client.admin.session import Admin
from kaspar.console import acls, quotas, users
from kaspar.console.acls import AclQuery, AclView
from kaspar.console.problems import Conflict, NotThere
from kaspar.console.quotas import EntityPart
from kaspar.console.users import Credential
from kaspar.testing import Broker
from tests.integration.console.administration.conftest import HERS
from tests.peers.observed import wait_until

BOB = [EntityPart("user", "bob"), EntityPart("client-id", None)]
SCRAM = Credential("SCRAM-SHA-256", 4096)
READS = AclView("TOPIC", "orders-", "PREFIXED", "User:bob", "*", "READ", "ALLOW")


def quotas_of_bob(admin: Admin) -> dict[str, float]:
    rows = [row for row in quotas.list_quotas(admin) if row.entity == tuple(BOB)]
    return dict(rows[0].values) if rows else {}


def test_a_quota_is_set_changed_and_removed(admin: Admin) -> None:
    quotas.change(admin, BOB, {"producer_byte_rate": 1024.0, "request_percentage": 50.0}, {})
    both = {"producer_byte_rate": 1024.0, "request_percentage": 50.0}
    wait_until(lambda: quotas_of_bob(admin) == both, "both quotas are seen")
    quotas.change(admin, BOB, {"producer_byte_rate": 2048.0, "request_percentage": None}, both)
    wait_until(lambda: quotas_of_bob(admin) == {"producer_byte_rate": 2048.0}, "one is changed, one is gone")
    with pytest.raises(Conflict, match="by someone else"):
        quotas.change(admin, BOB, {"producer_byte_rate": None}, both)
    quotas.change(admin, BOB, {"producer_byte_rate": None}, {"producer_byte_rate": 2048.0})
    wait_until(lambda: quotas_of_bob(admin) == {}, "there is no quota")


def test_acls_are_previewed_added_found_and_removed(admin: Admin, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    denies = replace(READS, resource_name=topic, pattern_type="LITERAL", permission_type="DENY", operation="ALL")
    acls.add(admin, [denies])
    (shown,) = acls.preview_additions(admin, [READS])
    assert (shown.exists, shown.denied_by) == (False, (denies,))
    assert shown.matches is not None
    assert shown.matches >= 1
    assert all(name.startswith("orders-") for name in shown.examples)

    acls.add(admin, [READS])
    assert acls.preview_additions(admin, [READS])[0].exists
    applying = AclQuery(resource_type="TOPIC", resource_name=topic, pattern_type="MATCH", principal="User:bob")
    assert acls.select(acls.list_acls(admin, applying), 0, 50).rows == (READS, denies)
    removal = acls.remove(admin, [READS, denies])
    assert (set(removal.removed), removal.missing) == ({READS, denies}, 0)
    assert acls.remove(admin, [READS]).missing == 1
    assert acls.list_acls(admin, AclQuery(principal="User:bob")) == []


def test_a_user_is_created_changed_and_removed(admin: Admin) -> None:
    def of_carol() -> tuple[Credential, ...]:
        return next((row.credentials for row in users.list_users(admin) if row.name == "carol"), ())

    users.create(admin, "carol", "secret", SCRAM)
    wait_until(lambda: of_carol() == (SCRAM,), "carol is there")
    with pytest.raises(Conflict, match="change the password instead"):
        users.create(admin, "carol", "other", SCRAM)
    users.change_password(admin, "carol", "new", Credential("SCRAM-SHA-256", 8192))
    wait_until(lambda: of_carol() == (Credential("SCRAM-SHA-256", 8192),), "carol has another password")
    with pytest.raises(NotThere):
        users.change_password(admin, "carol", "new", Credential("SCRAM-SHA-512", 4096))
    users.remove(admin, "carol", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    wait_until(lambda: of_carol() == (), "carol is gone")
    with pytest.raises(NotThere):
        users.remove(admin, "carol", ["SCRAM-SHA-256"])


def test_a_caller_without_the_right_is_refused(admin: Admin, alice: Admin) -> None:
    for attempt in (
        lambda: quotas.list_quotas(alice),
        lambda: quotas.change(alice, BOB, {"producer_byte_rate": 1.0}, {}),
        lambda: acls.list_acls(alice, AclQuery()),
        lambda: acls.add(alice, [replace(READS, resource_name=HERS)]),
        lambda: users.list_users(alice),
        lambda: users.create(alice, "mallory", "secret", SCRAM),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert AclOperation.ALTER in cluster_operations(admin)
    with pytest.raises(Refused, match="Restarting a pipeline needs Alter permission on the cluster"):
        require_cluster(alice, AclOperation.ALTER, "Restarting a pipeline")


@pytest.fixture
def unsecured() -> Iterator[Admin]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as session:
        yield session


def test_a_cluster_without_an_authorizer_is_told_apart(unsecured: Admin) -> None:
    assert acls.list_acls(unsecured, AclQuery()) is None
    with pytest.raises(Refused, match="no authorizer"):
        acls.preview_additions(unsecured, [READS])
    require_cluster(unsecured, AclOperation.ALTER, "Anything")
