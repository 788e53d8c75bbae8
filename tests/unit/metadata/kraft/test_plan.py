"""What an adoption would give, lose, and what forbids it, is known before anything is changed."""

import struct
import uuid
from pathlib import Path
from typing import Any

import pytest

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.config import BrokerConfig
from kaspar.metadata.image import DeletedTopic
from kaspar.metadata.kraft.folder import find_metadata_log, read_folder
from kaspar.metadata.kraft.plan import AdoptionPlan, plan_adoption
from kaspar.metadata.kraft.records import RegisterBrokerRecord, RemoveTopicRecord, TopicRecord
from kaspar.metadata.kraft.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    UserScramCredentialRecord,
)
from kaspar.metadata.kraft.state import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kaspar.metadata.kraft.unread_groups import UnreadGroups, find_unread_groups
from kaspar.protocol.schema import Message
from kaspar.quotas.entities import QuotaEntity
from kaspar.records import Record
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import SCRAM_SHA_256, ScramCredential
from kaspar.storage.disk.files import OsFiles
from tests.unit.metadata.kraft.kafka_folders import (
    CLUSTER,
    FIRST,
    ORDERS,
    SECOND,
    Node,
    level,
    partition,
    replayed,
    setting,
    usual,
)

GONE = uuid.UUID(int=5 << 64)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, ("data", "more")).write(usual())


def plan(node: Node, *messages: Message, voters: tuple[int, ...] = (1,), **more: Any) -> AdoptionPlan:
    state = replayed(*(messages or usual()))
    state.voters = frozenset(voters)
    folder = read_folder(OsFiles(), [str(path) for path in node.paths])
    settings: dict[str, Any] = {"end_offset": 9, "unread": UnreadGroups(), **more}
    config = settings.pop("config", node.config())
    return plan_adoption(state, folder, config, **settings)


def only(lines: tuple[str, ...]) -> str:
    (line,) = lines
    return line


# -- what is taken over ------------------------------------------------------------------------------------------------


def test_a_plain_cluster_is_taken_over_without_a_word(node: Node) -> None:
    planned = plan(node, *usual(level("share.version", 1), level("streams.version", 1)))
    assert planned.obstacles == planned.losses == planned.notes == ()
    image = planned.image
    assert (image.cluster_id, image.next_producer_id, image.features_epoch) == (CLUSTER, 3000, 9)
    assert image.topic_names == {ORDERS: "orders"}
    assert [one.leader_epoch for one in image.topics["orders"].partitions] == [4, 2]
    assert planned.directories == {FIRST: str(node.paths[0]), SECOND: str(node.paths[1])}


def test_feature_levels_are_kept_and_the_metadata_version_is_ours(node: Node) -> None:
    planned = plan(node, *usual(level(number=22), level("group.version", 1), level("transaction.version", 1)))
    assert planned.image.features == {"metadata.version": 30, "group.version": 1, "transaction.version": 1}


def test_settings_of_all_kinds_are_taken_over(node: Node) -> None:
    planned = plan(
        node,
        *usual(
            setting(TOPIC, "orders", "retention.ms", "-1"),
            setting(BROKER, "", "log.retention.ms", "1000"),
            setting(BROKER, "1", "log.cleaner.threads", "2"),
            setting(GROUP, "readers", "consumer.session.timeout.ms", "50000"),
        ),
    )
    assert planned.losses == ()
    assert planned.image.topics["orders"].configs == {"retention.ms": "-1"}
    assert planned.image.broker_configs == {"": {"log.retention.ms": "1000"}, "1": {"log.cleaner.threads": "2"}}
    assert planned.image.group_configs == {"readers": {"consumer.session.timeout.ms": "50000"}}


def test_a_deleted_topic_whose_logs_are_there_is_still_to_be_removed(node: Node) -> None:
    node.partition_folder("gone-0", GONE)
    removed = TopicRecord(name="gone", topic_id=GONE), RemoveTopicRecord(topic_id=GONE)
    planned = plan(node, *usual(*removed))
    assert planned.image.deleted_topics == {GONE: DeletedTopic("gone", GONE, (1,))}  # type: ignore[arg-type]
    assert planned.notes == ()


# -- what forbids it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voters", [(1, 2, 3), (2,), ()])
def test_only_the_sole_voter_is_adopted(node: Node, voters: tuple[int, ...]) -> None:
    assert "voters of the metadata quorum" in only(plan(node, voters=voters).obstacles)


def test_replicas_elsewhere_forbid_it(node: Node) -> None:
    topic = TopicRecord(name="wide", topic_id=FIRST)
    planned = plan(node, *usual(topic, *(partition(number, FIRST, replicas=(1, 2)) for number in range(5))))
    assert "other nodes than 1: wide-0, wide-1, wide-2 and 2 more" in only(planned.obstacles)


def test_a_later_metadata_version_forbids_it(node: Node) -> None:
    assert "metadata.version is 31" in only(plan(node, *usual(level(number=31))).obstacles)
    assert "group.version is 2" in only(plan(node, *usual(level("group.version", 2))).obstacles)
    assert "no metadata.version" in only(plan(node, level("group.version", 1)).obstacles)


def test_tiered_topics_forbid_it(node: Node) -> None:
    planned = plan(node, *usual(setting(TOPIC, "orders", "remote.storage.enable", "true")))
    assert "tiered storage, which would be missing: orders" in only(planned.obstacles)


def test_an_unlisted_log_directory_forbids_it(node: Node) -> None:
    planned = plan(node, *usual(TopicRecord(name="t", topic_id=FIRST), partition(0, FIRST, directories=(GONE,))))
    assert "not in log.dirs, by their ids: t-0 in" in only(planned.obstacles)


def test_a_gap_in_the_partitions_forbids_it(node: Node) -> None:
    planned = plan(node, *usual(TopicRecord(name="t", topic_id=FIRST), partition(1, FIRST)))
    assert "lacks partitions of topics: t" in only(planned.obstacles)


def test_directories_of_another_node_forbid_it(node: Node) -> None:
    config = BrokerConfig.of({"node.id": "2", "log.dirs": ",".join(map(str, node.paths))})
    obstacles = plan(node, config=config).obstacles
    assert any("belongs to node 1, and node.id is 2" in line for line in obstacles)


def test_directories_that_do_not_belong_together_forbid_it(node: Node) -> None:
    meta = node.paths[1] / "meta.properties"
    good = meta.read_text()
    meta.write_text(good.replace(CLUSTER, "another"))
    assert "several clusters: another" in only(plan(node).obstacles)
    meta.write_text((node.paths[0] / "meta.properties").read_text())
    assert "one is a copy" in only(plan(node).obstacles)
    meta.write_text("".join(line for line in good.splitlines(keepends=True) if "directory.id" not in line))
    assert "has no directory.id" in only(plan(node).obstacles)
    meta.unlink()
    with pytest.raises(KasparError, match="its volume is not mounted"):
        plan(node)


def test_an_old_record_format_forbids_it(node: Node) -> None:
    segment = node.paths[0] / "orders-0" / f"{0:020d}.log"
    segment.write_bytes(bytes(16) + b"\x01" + bytes(10))
    assert str(segment) in only(plan(node).obstacles)


# -- what is lost ------------------------------------------------------------------------------------------------------


def test_settings_that_mean_nothing_here_are_listed(node: Node) -> None:
    planned = plan(
        node,
        *usual(
            setting(TOPIC, "orders", "of.a.plugin", "1"),
            setting(TOPIC, "orders", "retention.ms", "soon"),
            setting(BROKER, "", "of.another", "1"),
            setting(BROKER, "7", "log.cleaner.threads", "2"),
            setting(GROUP, "g", "share.auto.offset.reset", "earliest"),
            setting(CLIENT_METRICS, "sub", "interval.ms", "1000"),
            setting(99, "x", "y", "z"),
        ),
    )
    losses = "\n".join(planned.losses)
    for expected in (
        "of.a.plugin is not known here: topic orders",
        "retention.ms is not valid here",
        "of.another is not known here: all brokers",
        "settings of another broker: 7",
        "share.auto.offset.reset has no effect",
        "unknown resource type 99: x",
    ):
        assert expected in losses
    assert planned.image.topics["orders"].configs == {}
    assert planned.image.broker_configs == {"": {"of.another": "1"}}
    assert planned.image.client_metrics_configs == {"sub": {"interval.ms": "1000"}}


def test_security_is_taken_over(node: Node) -> None:
    scram = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    acl = AccessControlEntryRecord(
        id=uuid.UUID(int=7),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    token = DelegationTokenRecord(
        owner="User:alice",
        requester="User:bob",
        renewers=("User:a:b",),
        issue_timestamp=1,
        max_timestamp=3,
        expiration_timestamp=2,
        token_id="t",
    )
    entity = (
        EntityData(entity_type="user", entity_name="alice"),
        EntityData(entity_type="client-id", entity_name=None),
    )
    quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=5.0, remove=False)
    planned = plan(node, *usual(scram, acl, token, quota))
    assert not planned.losses
    image = planned.image
    assert image.scram_credentials == {"alice": {SCRAM_SHA_256: ScramCredential(b"s", b"k", b"v", 4096)}}
    assert image.acls == {
        uuid.UUID(int=7).hex: Acl(
            ResourceType.TOPIC,
            "orders",
            PatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
    }
    assert image.delegation_tokens == {
        "t": DelegationToken("t", ("User", "alice"), ("User", "bob"), (("User", "a:b"),), 1, 2, 3)
    }
    assert image.client_quotas == {QuotaEntity("alice", ""): {"producer_byte_rate": 5.0}}


def test_what_is_not_known_of_security_is_listed(node: Node) -> None:
    scram = UserScramCredentialRecord(
        name="alice", mechanism=9, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    quota = ClientQuotaRecord(
        entity=(EntityData(entity_type="team", entity_name="a"),), key="producer_byte_rate", value=5.0, remove=False
    )
    losses = "\n".join(plan(node, *usual(scram, quota)).losses)
    assert "mechanisms that are not known here, of 1 user: alice" in losses
    assert "quotas for entities of a kind that is not known here: team a" in losses


def test_an_acl_that_is_not_known_forbids_it(node: Node) -> None:
    acl = AccessControlEntryRecord(
        id=uuid.UUID(int=7),
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=99,
        permission_type=2,
    )
    assert "1 ACL of a kind that is not known here: User:alice on orders" in only(plan(node, *usual(acl)).obstacles)


def test_other_brokers_and_unknown_features_are_listed(node: Node) -> None:
    other = RegisterBrokerRecord(
        broker_id=2, incarnation_id=FIRST, broker_epoch=1, end_points=(), features=(), rack=None
    )
    losses = plan(node, *usual(other, level("new.version", 3))).losses
    assert losses == (
        "the registrations of other brokers, which have no replicas: 2",
        "the feature new.version at level 3 is not known here",
    )


def test_groups_of_other_kinds_are_found_and_listed(node: Node) -> None:
    def group(kind: int, name: str, value: bytes | None = b"\0\0") -> Record:
        return Record(0, struct.pack(">hh", kind, len(name)) + name.encode(), value)

    folder = node.partition_folder(
        "__consumer_offsets-0",
        GONE,
        [
            *(group(11, "sharers"), group(11, "former"), group(3, "modern"), group(17, "streams"), group(2, "classic")),
            *(group(11, "former", None), Record(0, b"\0", b""), Record(0, None, b"")),
        ],
    )
    (folder / f"{8:020d}.log").write_bytes(b"damaged" * 20)
    unread = find_unread_groups(OsFiles(), [str(folder)])
    assert unread == UnreadGroups(("sharers",), ("streams",))
    losses = plan(node, unread=unread).losses
    assert [line.split(",")[0] for line in losses] == ["1 share group", "1 streams group"]


# -- what is good to know ----------------------------------------------------------------------------------------------


def test_an_unclean_stop_is_said(node: Node) -> None:
    (node.paths[1] / ".kafka_cleanshutdown").unlink()
    assert "not stopped in order" in only(plan(node).notes)
    assert str(node.paths[1]) in only(plan(node).notes)


def test_a_write_that_was_cut_off_is_said(node: Node) -> None:
    assert "its 12 bytes do not count" in only(plan(node, unfinished_bytes=12).notes)


def test_folders_and_topics_that_do_not_match_are_said(node: Node) -> None:
    node.partition_folder("stray-0", GONE)
    node.partition_folder(f"orders-1.{'a' * 32}-future", ORDERS)
    node.partition_folder(f"old-1.{'a' * 32}-delete", GONE)
    (node.paths[0] / "orders-0" / f"{0:020d}.log").unlink()
    (node.paths[0] / "orders-0" / "partition.metadata").unlink()
    (node.paths[0] / "orders-0").rmdir()
    missing, strays, moving = plan(node).notes
    assert "orders-0" in missing
    assert strays.endswith("stray-0")
    assert moving.endswith("-future")


def test_a_folder_without_an_id_is_the_topics(node: Node) -> None:
    (node.paths[0] / "orders-0" / "partition.metadata").unlink()
    assert plan(node).notes == ()
    found = read_folder(OsFiles(), [str(path) for path in node.paths]).partitions
    assert [(one.topic_partition, one.topic_id) for one in found] == [
        (TopicPartition("orders", 0), None),
        (TopicPartition("orders", 1), ORDERS),
    ]


def test_the_metadata_log_is_found_wherever_it_is(node: Node) -> None:
    paths = [str(path) for path in node.paths]
    assert find_metadata_log(None, paths) == str(node.metadata_log)
    assert find_metadata_log(None, paths[::-1]) == str(node.metadata_log)
    assert find_metadata_log(paths[0], paths) == str(node.metadata_log)
    assert find_metadata_log(paths[1], paths) is None
    (node.paths[1] / node.metadata_log.name).mkdir()
    with pytest.raises(KasparError, match="several metadata logs"):
        find_metadata_log(None, paths)
