"""`kaspar metadata adopt`: a stopped Apache Kafka 4.3 becomes a broker of Kaspar, on the same folder and with the same
properties file, and its clients go on.
"""

import json
import signal
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.metadata.kraft.frames import IGNORED, KINDS
from kaspar.protocol.schema import Message
from tests.compat.adopting.filling import (
    GONE,
    MODERN,
    ORDERS,
    SHARERS,
    TABLE,
    Clients,
    alter,
    fill,
    secure,
)
from tests.compat.adopting.looking import Seen, look
from tests.integration.commands import refusal, run
from tests.peers.kafka import ApacheKafka, kafka_jars, run_tool
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.process import BrokerStartError, write_properties
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import RawOffsets

pytestmark = pytest.mark.one_broker("it starts brokers of its own")

WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(autouse=True)
def _kafka_is_there() -> None:
    unless_missing(kafka_jars)


class AdoptedBroker(KasparProcess):
    """Kaspar on the folder, the port and the properties file of a broker of Kafka."""

    def __init__(self, kafka: ApacheKafka) -> None:
        super().__init__(kafka.folder / "kaspar", port=kafka.port)
        self.data_dir, self.properties_file = kafka.data_dir, kafka.properties_file

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)


def kafka_in(
    folder: Path, overrides: Mapping[str, str] | None = None, kind: type[ApacheKafka] = ApacheKafka
) -> ApacheKafka:
    """With two log directories."""
    quick = {
        "log.dirs": f"{folder / 'data'},{folder / 'more'}",
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    return kind(folder, overrides={**quick, **(overrides or {})})


def adopt(kafka: ApacheKafka, *options: str) -> str:
    done = run("kaspar", "metadata", "adopt", kafka.properties_file, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    return done.stdout


def refused(kafka: ApacheKafka, *options: str) -> tuple[str, str]:
    """What was listed, and the sentence with which the command ended."""
    done = run("kaspar", "metadata", "adopt", kafka.properties_file, *options)
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return done.stdout, line.removeprefix("kaspar: ")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "broker.log")
    }


def assert_same(after: Seen, before: Seen) -> None:
    assert _without_share_state(after.topics) == _without_share_state(before.topics)
    for name in ("cluster_id", "records", "offsets", "settings", "committed", "transactions"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.groups == {group for group in before.groups if group[0] != SHARERS}
    assert all(after.leader_epochs[partition] >= epoch for partition, epoch in before.leader_epochs.items())


def _without_share_state(topics: Mapping[str, Any]) -> dict[str, Any]:
    """Kafka creates that topic when a share group wants it, at its leisure."""
    return {name: topic for name, topic in topics.items() if name != "__share_group_state"}


def assert_clients_continue(port: int, clients: Clients, before: Seen) -> None:
    """Each of them with what it knows from Kafka."""
    with RawClient(port) as client:
        again = client.produce(ORDERS, [b"counted"], producer_id=clients.idempotent_id, base_sequence=0)
        assert again.error_code == 0
        assert client.read_values(ORDERS).count(b"counted") == 1
        assert client.produce(ORDERS, [b"on"], producer_id=clients.idempotent_id, base_sequence=1).error_code == 0
        used = {state[1] for state in before.transactions.values()} | {clients.idempotent_id}
        assert client.new_producer_id() > max(used)

        clients.transactional.client = client
        assert clients.transactional.write(ORDERS, b"open still").error_code == 0
        assert clients.transactional.end(commit=True).error_code == 0

        clients.modern.client = client
        assert clients.modern.step().error_code == ErrorCode.NONE
        offsets = RawOffsets(client, MODERN)
        assert offsets.commit(ORDERS, {0: 12}, generation=clients.modern.epoch, member_id=clients.modern.member_id) == {
            0: ErrorCode.NONE
        }
        clients.classic.connect_again(port)
        with clients.classic:
            assert clients.classic.heartbeat() == ErrorCode.NONE

        assert client.create_topic("new") == 0
        alter(client, {(2, ORDERS): {"retention.ms": "1000000000"}})


def test_a_cluster_of_kafka_goes_on_as_kaspars(tmp_path: Path) -> None:
    kafka = kafka_in(tmp_path, WITH_ACLS)
    with kafka:
        clients = fill(kafka.port)
        secure(kafka.port)
        before = look(kafka.port)
        assert "stop it first" in refused(kafka)[1]
    untouched = contents(tmp_path)
    assert "kaspar metadata adopt FILE" in refusal(kafka.properties_file)
    listed, sentence = refused(kafka)
    assert "--yes" in sentence
    assert "1 share group, which this" in listed
    assert adopt(kafka, "--dry-run").startswith(f"Found cluster {before.cluster_id}: ")
    assert contents(tmp_path) == untouched

    adopt(kafka, "--yes")
    with AdoptedBroker(kafka) as broker:
        assert_same(look(broker.port), before)
        assert GONE not in before.topics
        assert_clients_continue(broker.port, clients, before)
    assert "a broker has been started since" in refused(kafka, "--undo")[1]
    with AdoptedBroker(kafka) as broker, RawClient(broker.port) as client:
        assert "new" in client.topics()
        values = client.read_values(ORDERS)
        assert values[-3:-1] == [b"on", b"open still"]


@pytest.mark.long
def test_kafka_gets_its_folder_back_until_a_broker_has_used_it(tmp_path: Path) -> None:
    kafka = kafka_in(tmp_path)
    with kafka:
        fill(kafka.port)
        before = look(kafka.port)
    untouched = contents(tmp_path)
    adopt(kafka, "--yes")
    assert "already adopted" in adopt(kafka)
    adopt(kafka, "--undo")
    assert contents(tmp_path) == untouched
    adopt(kafka, "--yes")
    with pytest.raises(BrokerStartError, match="data_version"):
        kafka.start()
    adopt(kafka, "--undo")
    after_refusal = contents(tmp_path)  # Kafka has opened the indexes of its metadata log, and nothing else
    changed = {name for name, content in untouched.items() if after_refusal[name] != content}
    assert changed <= {f"data/__cluster_metadata-0/{0:020d}.{kind}" for kind in ("index", "timeindex")}
    with kafka:
        wait_until(lambda: kafka.lead(ORDERS, range(3)), "Kafka leads its partitions")
        assert_same(look(kafka.port), before)
    adopt(kafka, "--yes")
    with AdoptedBroker(kafka) as broker:
        assert_same(look(broker.port), before)


@pytest.mark.long
def test_a_kafka_that_was_killed_is_adopted(tmp_path: Path) -> None:
    """Its metadata log may end within a write, and its logs are recovered."""
    kafka = kafka_in(tmp_path)
    with kafka:
        clients = fill(kafka.port)
        before = look(kafka.port)
        kafka.signal(signal.SIGKILL)
        kafka.wait()
    segment = max((kafka.data_dir / "__cluster_metadata-0").glob("*.log"))
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:70])
    said = adopt(kafka, "--yes")
    assert "not stopped in order" in said
    assert "its 70 bytes do not count" in said
    with AdoptedBroker(kafka) as broker:
        assert_same(look(broker.port), before)
        assert_clients_continue(broker.port, clients, before)


class StandaloneKafka(ApacheKafka):
    """With voters that can be added and removed (KIP-853), which are in the metadata log."""

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {name: value for name, value in self._settings().items() if name != "controller.quorum.voters"}
        settings["controller.quorum.bootstrap.servers"] = f"{self.host}:{self.controller_port}"
        write_properties(self.properties_file, settings)
        if not (self.data_dir / "meta.properties").exists():
            options = ("--standalone", f"--cluster-id={self.cluster_id}", "--config", self.properties_file)
            run_tool("kafka.tools.StorageTool", "format", *options)


@pytest.mark.long
@pytest.mark.parametrize("kind", [ApacheKafka, StandaloneKafka])
def test_snapshots_are_read_and_so_is_what_follows(tmp_path: Path, kind: type[ApacheKafka]) -> None:
    """Here the metadata log has a directory of its own."""
    own = tmp_path / "own"
    overrides = {
        "metadata.log.dir": str(own),
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.log.segment.bytes": str(8 * 1024 * 1024),
    }
    kafka = kafka_in(tmp_path, overrides, kind)
    with kafka:
        fill(kafka.port)
        with RawClient(kafka.port) as client:
            for number in range(30):
                assert client.create_topic(f"topic-{number}", partitions=20) == 0
            assert all(client.delete_topic(f"topic-{number}") == 0 for number in range(0, 30, 2))
            folder = own / "__cluster_metadata-0"
            wait_until(lambda: len(list(folder.glob("*.checkpoint"))) > 1, "Kafka has written snapshots")
            assert client.create_topic("last", configs={"retention.ms": "77777"}) == 0
            wait_until(lambda: kafka.lead("last", [0]), "the broker knows what the controller has done")
        before = look(kafka.port)
    adopt(kafka, "--yes")
    with AdoptedBroker(kafka) as broker:
        after = look(broker.port)
        assert_same(after, before)
        assert after.topics.keys() >= {"topic-1", "last", ORDERS, TABLE}
        assert "topic-2" not in after.topics


def test_records_are_declared_as_kafka_does() -> None:
    """Kafka's definitions are in its jar."""
    (jar,) = kafka_jars().glob("kafka-metadata-*.jar")
    defined: dict[int, dict[str, Any]] = {}
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if name.startswith("common/metadata/") and name.endswith(".json"):
                lines = files.read(name).decode().splitlines()
                fields = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
                defined[fields["apiKey"]] = fields
    assert defined.keys() == KINDS.keys() | IGNORED.keys()
    for key, kind in (KINDS | IGNORED).items():
        assert kind.__name__ == defined[key]["name"]
        assert kind.SCHEMA.versions == defined[key]["validVersions"]
        assert kind.SCHEMA.flexible == defined[key]["flexibleVersions"]
        _compare(kind, defined[key]["fields"])


def _compare(kind: type[Message], fields: list[dict[str, Any]]) -> None:
    assert [each.name.replace("_", "") for each in kind.SCHEMA.fields] == [each["name"].lower() for each in fields]
    for ours, theirs in zip(kind.SCHEMA.fields, fields, strict=True):
        assert (ours.type, ours.versions, ours.nullable, ours.tag) == (
            theirs["type"],
            theirs["versions"],
            theirs.get("nullableVersions", ""),
            theirs.get("tag", -1),
        ), (kind.__name__, ours.name)
        default = kind.__dataclass_fields__[ours.name].default  # type: ignore[attr-defined]
        if "default" in theirs:
            assert default == json.loads(theirs["default"]), (kind.__name__, ours.name)
        if "fields" in theirs:
            struct = getattr(__import__(kind.__module__, fromlist=["_"]), theirs["type"].removeprefix("[]"))
            _compare(struct, theirs["fields"])
