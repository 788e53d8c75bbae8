"""From one broker to a cluster, as people do it: `kaspar metadata move` between two starts of a broker."""

import asyncio
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch, TopicPartition
from kaspar.client import Client
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.reassignments import alter_reassignments, list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.client.transactions import describe, list_transactions
from kaspar.metadata.image import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.layout import json_values, store_paths, topic_nodes
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.nodes import in_transactions, read_nodes
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.zookeeper import ZooKeeperMetadata
from kaspar.zookeeper import ZooKeeperServer
from tests.integration.commands import PROGRAMS, refusal, run
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.process import write_properties
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import commit, committed
from tests.peers.raw_transactions import RawProducer, find_coordinator
from tests.peers.telemetry_client import Pusher, subscribe
from tests.peers.wire import free_port
from tests.peers.zookeeper import Proxy

GROUP = 0
TOPICS = 100
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "log.segment.delete.delay.ms": "0",
}
RETENTION = ConfigResource(ResourceType.TOPIC, "orders")
DEFAULTS = ConfigResource(ResourceType.BROKER, "")


def nodes_at(address: str) -> dict[str, bytes]:
    async def read() -> dict[str, bytes]:
        metadata = await ZooKeeperMetadata.open(address, create=False)
        try:
            return await read_nodes(metadata.connect())
        finally:
            await metadata.close()

    return asyncio.run(read())


def moved(file: Path, *arguments: str) -> str:
    done = run("kaspar", "metadata", "move", file, *arguments)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def refused(file: Path, *arguments: str) -> str:
    done = run("kaspar", "metadata", "move", file, *arguments)
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line.removeprefix("kaspar: ")


@contextmanager
def stopped_broker(folder: Path) -> Iterator[ObservedBroker]:
    """A broker that has a topic and is stopped again."""
    with ObservedBroker(folder, overrides=SETTINGS) as broker:
        with broker.client() as client:
            assert client.create_topic("orders") == 0
            assert client.produce("orders", [b"first"]).error_code == 0
        assert broker.stop() == 0
        yield broker


def topic_in(admin: Admin, name: str) -> TopicDescription:
    found = describe_topics(admin, [name])[name]
    assert isinstance(found, TopicDescription)
    return found


def setting(admin: Admin, resource: ConfigResource, name: str) -> str | None:
    found = describe_configs(admin, [resource])[resource]
    assert isinstance(found, dict)
    return found[name].value


def subscription_of(client: RawClient) -> int:
    pusher = Pusher(client, uuid.UUID(int=714))
    assert pusher.ask() == 0
    assert pusher.subscription is not None
    assert pusher.subscription.requested_metrics == ("org.apache.kafka.producer.",)
    return pusher.subscription.subscription_id


def follower(folder: Path, number: int, address: str) -> ObservedBroker:
    return ObservedBroker(
        folder / str(number), overrides={**SETTINGS, "node.id": str(number), "zookeeper.connect": address}
    )


def test_broker_becomes_the_first_of_a_cluster_with_everything_it_has(tmp_path: Path, address: str) -> None:
    near, far, away = tmp_path / "near", tmp_path / "far", tmp_path / "away"
    file = tmp_path / "server.properties"
    write_properties(file, {"node.id": "1", "log.dirs": f"{near},{far}"})
    overrides = {**SETTINGS, "log.dirs": f"{near},{far}"}
    with ObservedBroker(tmp_path / "1", overrides=overrides) as broker:
        with broker.client() as client, Admin(broker.bootstrap) as admin:
            assert client.create_topic("orders", partitions=3) == 0
            assert client.create_topic("gone", partitions=4) == 0
            for partition in range(3):
                assert client.produce("orders", [b"a", b"b"], partition=partition).error_code == 0
            idempotent = client.new_producer_id()
            assert client.produce("orders", [b"c"], producer_id=idempotent, base_sequence=0).base_offset == 2
            find_coordinator(client, "readers", GROUP)
            assert commit(client, "readers", "orders", {0: 1, 2: 2}) == 0
            open_producer = RawProducer(client, "till")
            open_producer.begin_life()
            assert open_producer.write("orders", b"uncommitted", partition=1).error_code == 0
            retention = ConfigChange("retention.ms", ConfigOperation.SET, "7200000")
            cleaners = ConfigChange("log.cleaner.threads", ConfigOperation.SET, "2")
            assert incremental_alter_configs(admin, {RETENTION: [retention], DEFAULTS: [cleaners]}) == {}
            subscribe(client, "producers", metrics="org.apache.kafka.producer.", interval_ms=1000)
            subscription_id = subscription_of(client)
            topic_id = topic_in(admin, "orders").topic_id
        assert broker.stop() == 0

        # A topic is deleted while the disk with some of its logs is away: its remains are known to the metadata alone.
        far.rename(away)
        far.write_text("no folder can be made here")
        for error in ("a log directory cannot be used", "a partition has no log"):
            broker.expect_error(error)
        broker.start()
        with broker.client() as client:
            assert client.delete_topic("gone") == 0
        assert broker.stop() == 0
        far.unlink()
        away.rename(far)
        assert list(far.glob("gone-*"))

        said = moved(file, "--zookeeper", address)
        assert f"\n    zookeeper.connect={address}\n" in said
        assert "3 topics with 7 partitions, 1 deleted topic whose logs remain" in said

        broker.overrides["zookeeper.connect"] = address
        broker.start()
        wait_until(lambda: not list(far.glob("gone-*")), "the remains of the deleted topic are removed")
        with broker.client() as client, Admin(broker.bootstrap) as admin, Client(broker.bootstrap) as wire:
            assert client.topics() == {"orders", "__consumer_offsets", "__transaction_state"}
            assert topic_in(admin, "orders").topic_id == topic_id
            assert client.read_values("orders", partition=0) == [b"a", b"b", b"c"]
            assert setting(admin, RETENTION, "retention.ms") == "7200000"
            assert setting(admin, ConfigResource(ResourceType.BROKER, "1"), "log.cleaner.threads") == "2"
            assert subscription_of(client) == subscription_id
            find_coordinator(client, "readers", GROUP)
            assert committed(client, "readers", "orders", 0, 1, 2) == (0, {0: 1, 1: -1, 2: 2})
            # The retry of a batch from before the move is recognised.
            assert client.produce("orders", [b"c"], producer_id=idempotent, base_sequence=0).base_offset == 2
            assert client.produce("orders", [b"d"], producer_id=idempotent, base_sequence=1).base_offset == 3
            assert client.new_producer_id() > max(idempotent, open_producer.producer_id)
            assert [each.transactional_id for each in list_transactions(wire, prefix="", states=("Ongoing",))] == [
                "till"
            ]
            assert describe(wire, ["till"])["till"].partitions == (TopicPartition("orders", 1),)
            open_producer.client, epoch = client, open_producer.epoch
            assert open_producer.end(commit=True).error_code == 0
            again = RawProducer(client, "till")
            again.begin_life()
            assert again.producer_id == open_producer.producer_id
            assert again.epoch > epoch
            values = client.read_values("orders", partition=1)
        assert values[:3] == [b"a", b"b", b"uncommitted"]

        with follower(tmp_path, 2, address) as second, follower(tmp_path, 3, address):
            with Admin(broker.bootstrap) as admin:
                wait_until(lambda: len(describe_cluster(admin).nodes) == 3, "three brokers are up")
                with second.client() as client:
                    assert subscription_of(client) == subscription_id, "every broker gives a client the same"
                wanted = {TopicPartition("orders", number): (1, 2, 3) for number in range(3)}
                assert alter_reassignments(admin, wanted) == {}
                wait_until(lambda: not list_reassignments(admin), "the reassignment is done")
                assert [sorted(each.isr) for each in topic_in(admin, "orders").partitions] == [[1, 2, 3]] * 3
            assert broker.stop() == 0
            with Admin(second.bootstrap) as admin:
                wait_until(
                    lambda: 1 not in [each.leader for each in topic_in(admin, "orders").partitions], "new leaders"
                )
                leader = topic_in(admin, "orders").partitions[0].leader
                port = next(each.port for each in describe_cluster(admin).nodes if each.node_id == leader)
            with RawClient(port) as client:
                assert client.read_values("orders", partition=0) == [b"a", b"b", b"c", b"d"]


def test_neither_store_can_be_used_by_mistake(tmp_path: Path, address: str) -> None:
    with stopped_broker(tmp_path / "1") as broker:
        file = broker.properties_file
        on_zookeeper = ("--override", f"zookeeper.connect={address}")
        sentence = refusal(file, *on_zookeeper)
        assert "has the metadata of the cluster" in sentence
        assert f"'kaspar metadata move FILE --zookeeper {address}'" in sentence
        assert nodes_at(address) == {}, "nothing was created there"

        broker.start()
        assert "is in use by a running broker" in refused(file, "--zookeeper", address)
        assert broker.stop() == 0

        assert "Nothing was changed" in moved(file, "--zookeeper", address, "--dry-run")
        assert nodes_at(address) == {}
        moved(file, "--zookeeper", address)
        assert f"was moved to ZooKeeper: set zookeeper.connect={address}" in refusal(file)
        assert "was already moved" in moved(file, "--zookeeper", address)
        shown = run("kaspar", "metadata", "show", file).stdout
        assert "1 topic with 1 partition" in shown
        assert f"It was moved to ZooKeeper at {address}" in shown

        assert "the copy was removed" in moved(file, "--undo")
        assert nodes_at(address) == {}
        assert "has not been moved" in refused(file, "--undo")
        broker.start()
        with broker.client() as client:
            assert client.produce("orders", [b"second"]).error_code == 0
            assert client.create_topic("payments") == 0
        assert broker.stop() == 0

        moved(file, "--zookeeper", address)
        broker.overrides["zookeeper.connect"] = address
        broker.start()
        assert "brokers are registered" in refused(file, "--undo")
        with broker.client() as client:
            assert client.topics() == {"orders", "payments"}
            assert client.read_values("orders") == [b"first", b"second"]
        assert broker.stop() == 0
        assert "a controller has used the metadata" in refused(file, "--undo")

    with stopped_broker(tmp_path / "other") as other:
        sentence = refused(other.properties_file, "--zookeeper", address)
        ids = {nodes_at(address)[store_paths.CLUSTER_ID].decode(), cluster_id_of(other.data_dir)}
        assert len(ids) == 2
        assert all(each in sentence for each in ids)


def cluster_id_of(folder: Path) -> str:
    lines = (folder / "meta.properties").read_text().splitlines()
    return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))


def large_store(folder: Path) -> ClusterImage:
    """An embedded store of some megabytes, as a broker would have it."""
    partition = PartitionImage((BrokerId(1),), (BrokerId(1),), BrokerId(1), LeaderEpoch(3), 7)

    async def fill() -> ClusterImage:
        metadata = await SqliteMetadata.open(folder)
        store = metadata.connect()
        await prepare_store(store)
        topics = [
            TopicImage(
                f"topic-{number}", uuid.uuid4(), (partition,), {"leader.replication.throttled.replicas": "x" * 60_000}
            )
            for number in range(TOPICS)
        ]
        for transaction in in_transactions(
            [each for topic in topics for each in topic_nodes.topic_change(None, topic)]
        ):
            await store.transact(transaction)
        image = await load_image(store)
        await metadata.close()
        return image

    return asyncio.run(fill())


def test_killed_move_continues(tmp_path: Path, server: ZooKeeperServer, chroot: str, address: str) -> None:
    image = large_store(tmp_path)
    file = tmp_path / "server.properties"
    write_properties(file, {"node.id": "1", "log.dirs": str(tmp_path)})
    with Proxy(server) as proxy:
        through_proxy = proxy.address + chroot
        command = [str(PROGRAMS / "kaspar"), "metadata", "move", str(file), "--zookeeper", through_proxy]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as mover:
            asyncio.run(stop_half_way(address, proxy))
            mover.send_signal(signal.SIGKILL)
            assert mover.wait() == -signal.SIGKILL
        proxy.drop()
        half = nodes_at(address)
        assert 0 < sum(path.startswith("/topics/") for path in half) < TOPICS
        assert store_paths.CLUSTER_ID not in half
        other = tmp_path / "other.properties"
        settings = {"node.id": "2", "log.dirs": str(tmp_path / "2"), "zookeeper.connect": address}
        write_properties(other, {**settings, "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"})
        assert f"the metadata of the cluster {image.cluster_id} is being moved here" in refusal(other)
        assert "The move continues" in moved(file, "--zookeeper", through_proxy, "--dry-run")
        moved(file, "--zookeeper", through_proxy)

    async def check() -> None:
        metadata = await ZooKeeperMetadata.open(address)
        assert await load_image(metadata.connect()) == image
        assert await metadata.connect().get(store_paths.MOVING) is None
        await metadata.close()

    asyncio.run(check())


async def stop_half_way(address: str, proxy: Proxy) -> None:
    """Swallow the mover's requests once the first of them have arrived."""
    metadata = await ZooKeeperMetadata.open(address)
    store = metadata.connect()
    begun = asyncio.Event()
    async with asyncio.timeout(30):
        if await store.get(store_paths.MOVING, lambda _: begun.set()) is None:
            await begun.wait()
    proxy.drop(requests=True)
    await metadata.close()


def test_formatting_registers_a_new_directory_where_the_metadata_is(tmp_path: Path, address: str) -> None:
    """As after a disk was replaced: an embedded store is neither created nor used."""
    file = tmp_path / "server.properties"
    first, second = tmp_path / "first", tmp_path / "second"
    settings = {"node.id": "1", "log.dirs": str(first)}
    write_properties(file, settings)
    assert run("kafka-storage", "format", "-c", file).returncode == 0
    moved(file, "--zookeeper", address)
    write_properties(file, {**settings, "log.dirs": f"{first},{second}", "zookeeper.connect": address})
    done = run("kafka-storage", "format", "-c", file, "--ignore-formatted")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Formatted {second} for cluster {cluster_id_of(first)}.\n"
    assert cluster_id_of(second) == cluster_id_of(first)
    known = json_values.decode(nodes_at(address)[f"{store_paths.BROKER_DIRECTORIES}/1"])
    assert sorted(known.values()) == [str(first), str(second)]
    assert not (second / "metadata.db").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--zookeeper", "127.0.0.1:1"), "there is no metadata store (metadata.db) in"),
        (("--undo",), "there is no metadata store (metadata.db) in"),
    ],
)
def test_folder_without_a_store_is_refused(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    file = tmp_path / "server.properties"
    write_properties(file, {"node.id": "1", "log.dirs": str(tmp_path / "data")})
    assert sentence in refused(file, *arguments)
