"""The administrator's session with our own broker: quotas, SCRAM credentials, ACLs, and resources with settings."""

from collections.abc import Iterator

import pytest

from kaspar.acls.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin import configs
from kaspar.client.admin.acls import create_acls, delete_acls, describe_acls
from kaspar.client.admin.config_resources import list_config_resources
from kaspar.client.admin.configs import ConfigChange, ConfigOperation, ConfigResource, incremental_alter_configs
from kaspar.client.admin.quotas import QuotaFilter, alter_client_quotas, describe_client_quotas
from kaspar.client.admin.scram import (
    NewScramCredential,
    OldScramCredential,
    ScramCredentialInfo,
    alter_scram_credentials,
    describe_scram_credentials,
)
from kaspar.client.admin.session import Admin
from kaspar.quotas.entities import CLIENT_ID, PRODUCER_BYTE_RATE, USER, QuotaEntity
from kaspar.security.scram import SCRAM_SHA_256
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.sasl_ssl import AUTHORIZER


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with KasparProcess(tmp_path_factory.mktemp("broker"), overrides=settings) as running:
        yield running


@pytest.fixture
def admin(broker: KasparProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as session:
        yield session


def test_quotas_are_changed_and_described(admin: Admin) -> None:
    alice, clients = QuotaEntity(user="alice"), QuotaEntity(user="alice", client_id="")
    changes = {alice: {PRODUCER_BYTE_RATE: 1024.0}, clients: {PRODUCER_BYTE_RATE: 512.0}}
    assert alter_client_quotas(admin, changes) == {alice: None, clients: None}
    of_alice = [QuotaFilter.of(USER, "alice")]
    wait_until(lambda: describe_client_quotas(admin, of_alice) == changes, "both quotas are described")
    assert describe_client_quotas(admin, of_alice, strict=True) == {alice: {PRODUCER_BYTE_RATE: 1024.0}}
    default_clients = [*of_alice, QuotaFilter.of(CLIENT_ID, "")]
    assert describe_client_quotas(admin, default_clients) == {clients: {PRODUCER_BYTE_RATE: 512.0}}

    negative = alter_client_quotas(admin, {alice: {PRODUCER_BYTE_RATE: -1.0}})[alice]
    assert negative is not None
    assert negative.code is ErrorCode.INVALID_REQUEST
    alter_client_quotas(admin, {each: {PRODUCER_BYTE_RATE: None} for each in changes})
    wait_until(lambda: describe_client_quotas(admin, of_alice) == {}, "there are no quotas")


def test_scram_credentials_are_created_described_and_deleted(admin: Admin) -> None:
    info = ScramCredentialInfo(SCRAM_SHA_256, 8192)
    new = [NewScramCredential("bob", "secret", info), NewScramCredential("carol", "", info)]
    done = alter_scram_credentials(admin, new)
    assert done["bob"] is None
    assert done["carol"] is not None
    assert done["carol"].code is ErrorCode.UNACCEPTABLE_CREDENTIAL
    wait_until(lambda: describe_scram_credentials(admin) == {"bob": (info,)}, "bob can log in")

    assert alter_scram_credentials(admin, old=[OldScramCredential("bob", SCRAM_SHA_256)]) == {"bob": None}
    wait_until(lambda: describe_scram_credentials(admin) == {}, "bob cannot log in")
    missing = describe_scram_credentials(admin, ["bob"])["bob"]
    assert isinstance(missing, Refused)
    assert missing.code is ErrorCode.RESOURCE_NOT_FOUND


def test_acls_are_created_described_and_deleted(admin: Admin) -> None:
    read = Acl(
        ResourceType.TOPIC,
        "audit-",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    nameless = read._replace(resource_name="")
    done = create_acls(admin, [read, nameless])
    assert done[read] is None
    assert done[nameless] is not None
    matching = AclFilter(ResourceType.TOPIC, "audit-2026", PatternType.MATCH)
    wait_until(lambda: describe_acls(admin, matching) == [read], "the ACL is described")
    assert describe_acls(admin, AclFilter(principal="User:bob")) == []
    assert delete_acls(admin, [matching, AclFilter(principal="User:bob")]) == [[read], []]
    wait_until(lambda: describe_acls(admin) == [], "there are no ACLs")


def test_resources_with_settings_are_listed(admin: Admin) -> None:
    fast = ConfigResource(configs.ResourceType.CLIENT_METRICS, "fast")
    assert incremental_alter_configs(admin, {fast: [ConfigChange("interval.ms", ConfigOperation.SET, "1000")]}) == {}
    wait_until(lambda: list_config_resources(admin, [fast.type]) == [fast], "the subscription is listed")
    assert list_config_resources(admin, [configs.ResourceType.GROUP]) == []
    assert {each.type for each in list_config_resources(admin)} == {
        configs.ResourceType.BROKER,
        configs.ResourceType.BROKER_LOGGER,
        configs.ResourceType.CLIENT_METRICS,
    }


def test_controllers_have_no_endpoint(broker: KasparProcess) -> None:
    """A session with controllers, which are parts of our brokers: refused at once, not after the session's time."""
    with Admin(broker.bootstrap, via_controllers=True) as admin:
        with pytest.raises(Refused) as refused:
            describe_acls(admin)
        assert refused.value.code is ErrorCode.MISMATCHED_ENDPOINT_TYPE
        with pytest.raises(Refused) as unsupported:
            describe_client_quotas(admin, [QuotaFilter.of(USER, None)])
        assert unsupported.value.code is ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
