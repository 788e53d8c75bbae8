"""Administration of many groups at once: a coordinator gets one request, however many groups it has."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import alter_group_offsets, delete_group_offsets, list_group_offsets
from kaspar.client.admin.groups import (
    GroupDescription,
    GroupType,
    delete_groups,
    describe_consumer_groups,
    list_consumer_groups,
)
from kaspar.client.admin.session import Admin
from tests.compat.features.served import served
from tests.peers.observed import ObservedBroker, wait_until

GROUPS = [f"group-{number:03}" for number in range(200)]
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path_factory.mktemp("broker")) as running:
        with running.client() as client:
            assert client.create_topic("orders") == 0
        wait_until(lambda: running.lead("orders", [0]), "the partition is led")
        with Admin(running.bootstrap) as admin:
            for group_id in GROUPS:
                assert alter_group_offsets(admin, group_id, {ORDERS: 7}) == {ORDERS: None}
        yield running


@pytest.fixture
def admin(broker: ObservedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as session:
        yield session


def _requests(broker: ObservedBroker) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (api, _), count in served(broker).items():
        counts[api] += count
    return counts


def test_many_groups_take_one_request_of_each_kind(broker: ObservedBroker, admin: Admin) -> None:
    before = _requests(broker)
    assert [each.group_id for each in list_consumer_groups(admin, states=["Empty"])] == GROUPS
    described = describe_consumer_groups(admin, GROUPS)
    committed = list_group_offsets(admin, GROUPS)
    sent = _requests(broker) - before
    assert {sent[api] for api in ("listgroups", "consumergroupdescribe", "describegroups", "offsetfetch")} == {1}
    for group_id in GROUPS:
        group, offsets = described[group_id], committed[group_id]
        assert isinstance(group, GroupDescription)
        assert (group.type, group.state, group.members) == (GroupType.CLASSIC, "Empty", ())
        assert isinstance(offsets, dict)
        assert [(where, each.offset) for where, each in offsets.items()] == [(ORDERS, 7)]


def test_groups_and_offsets_that_do_not_exist(admin: Admin) -> None:
    missing = describe_consumer_groups(admin, ["nobody"])["nobody"]
    assert isinstance(missing, Refused)
    assert missing.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert list_group_offsets(admin, ["nobody"]) == {"nobody": {}}
    with pytest.raises(Refused) as refused:
        delete_group_offsets(admin, "nobody", [ORDERS])
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    nowhere = TopicPartition("nowhere", 0)
    altered = alter_group_offsets(admin, GROUPS[0], {nowhere: 1})[nowhere]
    assert altered is not None
    assert altered.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_many_groups_are_deleted_with_one_request(broker: ObservedBroker, admin: Admin) -> None:
    assert delete_group_offsets(admin, GROUPS[0], [ORDERS]) == {ORDERS: None}
    before = _requests(broker)
    results = delete_groups(admin, [*GROUPS[1:], "nobody"])
    assert (_requests(broker) - before)["deletegroups"] == 1
    refused = results.pop("nobody")
    assert refused is not None
    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert set(results.values()) == {None}
