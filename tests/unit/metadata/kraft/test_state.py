"""What Kafka's metadata records add up to."""

import uuid
from typing import Any

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import ZERO_UUID
from kaspar.metadata.kraft.frames import IGNORED, KINDS, UnknownRecord, read_record
from kaspar.metadata.kraft.metadata_log import MetadataBatch
from kaspar.metadata.kraft.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kaspar.metadata.kraft.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kaspar.metadata.kraft.state import BROKER, TOPIC, KRaftState
from kaspar.protocol.messages.voters_record import KRaftVersionFeature, Voter, VotersRecord
from kaspar.protocol.schema import Message
from kaspar.records import ControlType, Record, iter_records
from tests.unit.metadata.kraft.kafka_folders import (
    FIRST,
    NODE,
    ORDERS,
    SECOND,
    control,
    frame,
    leader_change,
    level,
    partition,
    replayed,
    setting,
    usual,
)


def change(number: int = 0, **fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=ORDERS, **fields)


def after(*changes: Message) -> Any:
    """Partition 0 after these changes."""
    return replayed(*usual(), *changes).topics[ORDERS].partitions[0]


def registration(broker_id: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=uuid.uuid4(), broker_epoch=1, end_points=(), features=(), rack=None
    )


def test_partitions_keep_their_epochs() -> None:
    state = replayed(*usual())
    first, second = (state.topics[ORDERS].partitions[number] for number in range(2))
    assert (first.leader, first.leader_epoch, first.partition_epoch) == (NODE, 4, 7)
    assert (second.leader, second.leader_epoch, second.partition_epoch) == (-1, 2, 3)
    assert first.directories == (FIRST,)
    assert state.next_producer_id == 3000


def test_a_change_of_the_leader_begins_an_epoch() -> None:
    changed = after(change(leader=-1))
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (-1, 5, 8)
    changed = after(change(leader=NODE), change(leader=NODE))
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (NODE, 6, 9)


def test_what_a_change_does_not_name_stays() -> None:
    changed = after(change(isr=(), eligible_leader_replicas=(NODE,), last_known_elr=(NODE,)))
    assert (changed.isr, changed.elr, changed.last_known_elr) == ((), (NODE,), (NODE,))
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (NODE, 4, 8)
    assert changed.replicas == (NODE,)
    assert changed.directories == (FIRST,)


def test_replicas_change_with_their_directories() -> None:
    changed = after(change(replicas=(NODE, 2), adding_replicas=(2,), directories=(FIRST, ZERO_UUID)))
    assert changed.directories == (FIRST, ZERO_UUID)
    assert changed.is_reassigning
    assert after(change(replicas=(NODE, 2))).directories == ()
    assert after(change(directories=(SECOND,))).directories == (SECOND,)


@pytest.mark.parametrize("reserved", [0, 1, 2, 99])
def test_reserved_directories_are_unknown_ones(reserved: int) -> None:
    assert after(change(directories=(uuid.UUID(int=reserved),))).directories == ()


def test_eligible_replicas_are_cleared_of_one_topic_or_all() -> None:
    eligible = change(eligible_leader_replicas=(NODE,))
    assert after(eligible, ClearElrRecord(topic_name="others")).elr == (NODE,)
    assert after(eligible, ClearElrRecord(topic_name="orders")).elr == ()
    assert after(eligible, ClearElrRecord(topic_name="")).elr == ()


def test_a_removed_topic_takes_its_settings_along() -> None:
    again = uuid.UUID(int=77)
    state = replayed(
        *usual(setting(TOPIC, "orders", "retention.ms", "5")),
        RemoveTopicRecord(topic_id=ORDERS),
        TopicRecord(name="orders", topic_id=again),
        partition(0, again),
    )
    assert list(state.topics) == [again]
    assert not state.configs
    assert state.removed_topics == {ORDERS: "orders"}


def test_settings_are_replaced_and_removed() -> None:
    state = replayed(
        setting(BROKER, "", "log.retention.ms", "5"),
        setting(BROKER, "", "log.retention.ms", "6"),
        setting(BROKER, "1", "log.cleaner.threads", "2"),
        setting(BROKER, "1", "log.cleaner.threads", None),
        setting(BROKER, "2", "log.cleaner.threads", None),
    )
    assert state.configs == {(BROKER, ""): {"log.retention.ms": "6"}}


def test_levels_are_replaced_and_removed() -> None:
    assert replayed(level("a", 1), level("a", 2), level("b", 1), level("b", 0)).features == {"a": 2}


def test_brokers_register_and_leave() -> None:
    state = replayed(registration(1), registration(2), UnregisterBrokerRecord(broker_id=2, broker_epoch=1))
    assert list(state.brokers) == [1]


def test_security_is_known_as_it_is_at_the_end() -> None:
    kept, removed = uuid.uuid4(), uuid.uuid4()

    def acl(number: uuid.UUID) -> AccessControlEntryRecord:
        return AccessControlEntryRecord(
            id=number,
            resource_type=2,
            resource_name="orders",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )

    def scram(name: str) -> UserScramCredentialRecord:
        return UserScramCredentialRecord(
            name=name, mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )

    def token(name: str) -> DelegationTokenRecord:
        return DelegationTokenRecord(
            owner="User:alice",
            requester="User:alice",
            renewers=(),
            issue_timestamp=1,
            max_timestamp=3,
            expiration_timestamp=2,
            token_id=name,
        )

    def quota(user: str | None, *, remove: bool = False) -> ClientQuotaRecord:
        entity = (EntityData(entity_type="user", entity_name=user),)
        return ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=10.0, remove=remove)

    state = replayed(
        *(acl(kept), acl(removed), RemoveAccessControlEntryRecord(id=removed)),
        *(scram("alice"), scram("bob"), RemoveUserScramCredentialRecord(name="bob", mechanism=1)),
        *(token("a"), token("b"), RemoveDelegationTokenRecord(token_id="b")),
        *(quota("alice"), quota(None), quota("alice", remove=True)),
    )
    assert list(state.acls) == [kept]
    assert list(state.scram_credentials) == [("alice", 1)]
    assert list(state.delegation_tokens) == ["a"]
    assert state.quotas == {((("user", None),), "producer_byte_rate"): 10.0}


def test_a_transaction_counts_when_it_ends() -> None:
    begun = BeginTransactionRecord(name="bootstrap"), level("a", 1)
    assert replayed(*begun).features == {}
    assert replayed(*begun, EndTransactionRecord()).features == {"a": 1}
    assert replayed(*begun, AbortTransactionRecord(reason="no"), level("b", 1)).features == {"b": 1}
    assert replayed(*begun, EndTransactionRecord(), level("b", 1)).features == {"a": 1, "b": 1}


def test_the_last_voters_count() -> None:
    voter = Voter(
        voter_id=3,
        voter_directory_id=FIRST,
        endpoints=(),
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    state = KRaftState()
    for octets, expected in (
        (leader_change(0, (1, 2)), {1, 2}),
        (control(1, ControlType.KRAFT_VOTERS, VotersRecord(version=0, voters=(voter,))), {3}),
        (leader_change(2, (3,)), {3}),
    ):
        state.replay(MetadataBatch(0, True, tuple(iter_records(octets))))
        assert state.voters == expected


def test_records_of_a_later_kafka_are_refused() -> None:
    good = frame(level())
    for octets, problem in (
        (b"\x02" + good[1:], "frame of version 2"),
        (b"\x01\x3c\x00", "kind 60"),
        (b"\x01\x0c\x01" + good[3:], "FeatureLevelRecord has version 1"),
    ):
        with pytest.raises(UnknownRecord, match=problem):
            read_record(octets)


def test_bytes_that_are_no_record_are_refused() -> None:
    for octets in (None, b"", b"\x01", b"\x01\x0c", frame(level())[:-1], b"\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(MalformedBytes):
            read_record(octets)
    for record in (change(number=9), RemoveTopicRecord(topic_id=FIRST), partition(topic_id=FIRST)):
        with pytest.raises(MalformedBytes):
            replayed(*usual(), record)


def test_records_about_nodes_are_passed_over() -> None:
    assert not KINDS.keys() & IGNORED.keys()
    for key in IGNORED:
        assert read_record(bytes([1, key, 0]) + b"anything") is None


def test_every_kind_is_replayed() -> None:
    """A kind that is read but not applied would end the command with a KeyError."""
    from kaspar.metadata.kraft import state

    transactions = {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord}
    assert set(KINDS.values()) - transactions == set(state._APPLY)


def test_older_versions_are_read() -> None:
    state = KRaftState()
    records = [frame(TopicRecord(name="orders", topic_id=ORDERS)), frame(partition(0), 0)]
    state.replay(MetadataBatch(0, False, tuple(Record(0, None, value) for value in records)))
    assert state.topics[ORDERS].partitions[0].directories == ()
