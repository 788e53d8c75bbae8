"""Folders as a stopped Kafka node leaves them, made of records that a test chooses."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kaspar.base.ids import uuid_to_text
from kaspar.config import BrokerConfig
from kaspar.metadata.kraft.metadata_log import MetadataBatch, MetadataLog
from kaspar.metadata.kraft.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from kaspar.metadata.kraft.state import KRaftState
from kaspar.protocol import codec
from kaspar.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kaspar.protocol.schema import Message, VersionRange
from kaspar.records import ControlType, Record, build_batch, build_leader_change

CLUSTER = "vPeOCWypqUOSepEvx0cbog"
NODE = 1
ORDERS = uuid.UUID("6f1c6a3e-3f6b-4a8e-9d0b-7c1e52d6a9b4")
FIRST, SECOND = uuid.UUID(int=1 << 100), uuid.UUID(int=1 << 101)
METADATA_LOG = "__cluster_metadata-0"
QUORUM_STATE = {
    "clusterId": "",
    "leaderId": NODE,
    "leaderEpoch": 1,
    "votedId": -1,
    "appliedOffset": 0,
    "currentVoters": [{"voterId": NODE}],
    "data_version": 0,
}


def frame(message: Message, version: int | None = None) -> bytes:
    """A record as Kafka frames it, by default in its last version."""
    version = VersionRange.parse(message.SCHEMA.versions).last if version is None else version
    return bytes([1, message.SCHEMA.api_key, version]) + codec.write(message, version)


def batch(base_offset: int, *messages: Message) -> bytes:
    records = [Record(1_000, None, frame(message)) for message in messages]
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=1))


def leader_change(base_offset: int, voters: tuple[int, ...] = (NODE,)) -> bytes:
    return bytes(build_leader_change(NODE, voters, voters, timestamp=1_000, base_offset=base_offset, leader_epoch=1))


def control(base_offset: int, kind: ControlType, message: Message) -> bytes:
    key = b"\0\0" + kind.to_bytes(2, "big")
    record = Record(1_000, key, codec.write(message, 0))
    return bytes(build_batch([record], base_offset=base_offset, control=True, leader_epoch=1))


def footer(base_offset: int) -> bytes:
    return control(base_offset, ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))


def partition(number: int = 0, topic_id: uuid.UUID = ORDERS, **fields: object) -> PartitionRecord:
    known: dict[str, object] = {
        "replicas": (NODE,),
        "isr": (NODE,),
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": NODE,
        "leader_epoch": 4,
        "partition_epoch": 7,
        "directories": (FIRST,),
    }
    return PartitionRecord(partition_id=number, topic_id=topic_id, **{**known, **fields})  # type: ignore[arg-type]


def level(name: str = "metadata.version", number: int = 30) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=number)


def setting(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def usual(*more: Message) -> tuple[Message, ...]:
    """A cluster with one topic of two partitions."""
    return (
        level(),
        TopicRecord(name="orders", topic_id=ORDERS),
        partition(0),
        partition(1, leader=-1, leader_epoch=2, partition_epoch=3),
        ProducerIdsRecord(broker_id=NODE, broker_epoch=5, next_producer_id=3000),
        *more,
    )


def replayed(*messages: Message) -> KRaftState:
    state = KRaftState(voters=frozenset({NODE}))
    state.replay(MetadataBatch(0, False, tuple(Record(0, None, frame(message)) for message in messages)))
    return state


@dataclass
class Node:
    """A node's folder, with one log directory in it, or several."""

    folder: Path
    log_dirs: tuple[str, ...] = ("data",)
    directory_ids: tuple[uuid.UUID, ...] = (FIRST, SECOND)
    cluster_ids: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[Path]:
        return [self.folder / name for name in self.log_dirs]

    @property
    def metadata_log(self) -> Path:
        return self.paths[0] / METADATA_LOG

    @property
    def store(self) -> Path:
        return self.paths[0] / "metadata.db"

    @property
    def quorum_state(self) -> Path:
        return self.metadata_log / "quorum-state"

    def config(self, **more: str) -> BrokerConfig:
        return BrokerConfig.of({"node.id": str(NODE), "log.dirs": ",".join(map(str, self.paths)), **more})

    def write(self, messages: Sequence[Message], *, voters: tuple[int, ...] = (NODE,), clean: bool = True) -> "Node":
        """A metadata log with these records, and a folder for each partition of `orders`."""
        for path, directory_id in zip(self.paths, self.directory_ids, strict=False):
            path.mkdir(parents=True)
            lines = [f"cluster.id={CLUSTER}", f"directory.id={uuid_to_text(directory_id)}", f"node.id={NODE}"]
            (path / "meta.properties").write_text("\n".join([*lines, "version=1", ""]))
            if clean:
                (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
        self.metadata_log.mkdir()
        self.quorum_state.write_text(json.dumps(QUORUM_STATE))
        self.segment(0, leader_change(0, voters), batch(1, *messages))
        for number in range(2):
            self.partition_folder(f"orders-{number}", ORDERS)
        return self

    def segment(self, base_offset: int, *batches: bytes) -> Path:
        path = self.metadata_log / f"{base_offset:020d}.log"
        path.write_bytes(b"".join(batches))
        return path

    def snapshot(self, end_offset: int, *batches: bytes) -> Path:
        path = self.metadata_log / f"{end_offset:020d}-0000000001.checkpoint"
        path.write_bytes(b"".join(batches))
        return path

    def partition_folder(self, name: str, topic_id: uuid.UUID | None, records: Iterable[Record] = ()) -> Path:
        path = self.paths[0] / name
        path.mkdir()
        if topic_id is not None:
            (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_to_text(topic_id)}")
        written = list(records)
        (path / f"{0:020d}.log").write_bytes(build_batch(written, base_offset=0) if written else b"")
        return path

    def log(self) -> MetadataLog:
        return MetadataLog(str(self.metadata_log))
