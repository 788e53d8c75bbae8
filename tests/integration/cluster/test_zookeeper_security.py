"""Brokers on a ZooKeeper that knows its clients: by TLS with certificates, and by SASL; node ACLs; what is refused."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.cli import main as cli
from kaspar.client import Client
from kaspar.config import BrokerConfig
from kaspar.metadata.layout import store_paths
from kaspar.metadata.nodes import top_names
from kaspar.metadata.store import AccessDenied, Create, Put
from kaspar.metadata.zookeeper import ZooKeeperMetadata, ZooKeeperStore
from kaspar.metadata.zookeeper.migration import set_all_acls
from kaspar.metadata.zookeeper.node_acls import is_sensitive
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.records import Record, build_batch
from kaspar.tools import storage, zookeeper_security_migration
from kaspar.zookeeper import State, state_of
from kaspar.zookeeper.config import read_config
from kaspar.zookeeper.server import ZooKeeperServer
from tests.integration.commands import refusal
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.process import write_properties
from tests.peers.raw_client import RawClient
from tests.peers.secured_zookeeper import SecuredZooKeeper, login_module, secured_zookeeper
from tests.peers.wire import free_port
from tests.peers.zookeeper import Proxy, serving
from tests.unit.metadata.stores import until, within

SECONDS = 60.0
FOREIGN = "/of-another-program"
CREDENTIAL = "SCRAM-SHA-512=[name=alice,password=alice-secret]"
JAAS = "kaspar.zookeeper.sasl.jaas.config"
_numbers = itertools.count(1)


@pytest.fixture
def chroot() -> str:
    return f"/test-{next(_numbers)}"


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(within(SECONDS, main()))


@contextlib.asynccontextmanager
async def connected(connect: str, settings: dict[str, str]) -> AsyncIterator[ZooKeeperStore]:
    """A session as a broker with these settings has it."""
    timeouts = {"zookeeper.session.timeout.ms": "40000", "zookeeper.connection.timeout.ms": "30000"}
    metadata = await ZooKeeperMetadata.configured(
        BrokerConfig.of({"zookeeper.connect": connect, **timeouts, **settings})
    )
    try:
        yield metadata.connect()
    finally:
        await metadata.close()


def problem_of(connect: str, settings: dict[str, str]) -> str:
    """Why a broker with these settings does not get in."""

    async def main() -> None:
        async with connected(connect, settings) as store:
            await store.get("/")

    with pytest.raises(KasparError) as raised:
        run(main)
    return str(raised.value)


def create_topic(broker: KasparProcess, name: str) -> ErrorCode:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
    with Client(broker.bootstrap) as client:
        created = client.request(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), CreateTopicsResponse)
    return ErrorCode(created.topics[0].error_code)


def produce(broker: KasparProcess, topic: str) -> None:
    with Client(broker.bootstrap) as client:
        client.produce(topic, 0, bytes(build_batch([Record(0, None, b"one")])), acks=-1)


def topics(broker: KasparProcess) -> set[str]:
    with RawClient(broker.port) as client:
        return {topic.name or "" for topic in client.metadata().topics}


async def all_paths(store: ZooKeeperStore) -> list[str]:
    paths, level = ["/"], [f"/{name}" for name in await top_names(store) if f"/{name}" != FOREIGN]
    while level:
        paths += level
        level = [f"{path}/{name}" for path in level for name in await store.children(path)]
    return paths


async def acl_of(store: ZooKeeperStore, path: str) -> dict[str, int]:
    acls, _ = await store.session.call(lambda client: client.get_acls_async(path))
    return {f"{acl.id.scheme}:{acl.id.id}": acl.perms for acl in acls}


def check_nodes_belong_to(zookeeper: SecuredZooKeeper, chroot: str, settings: dict[str, str], owner: str) -> None:
    """Everything below the chroot: only the owner changes it, and anybody else reads what has no secrets."""

    async def main() -> None:
        connect = zookeeper.secure if "zookeeper.ssl.client.enable" in settings else zookeeper.plain
        async with connected(connect + chroot, settings) as store, connected(zookeeper.plain + chroot, {}) as stranger:
            paths = await all_paths(store)
            assert {
                store_paths.CONTROLLER_SEAT,
                store_paths.FENCE,
                store_paths.SCRAM,
                store_paths.TOKENS,
                store_paths.ACLS,
            } < set(paths)
            assert any(path.startswith(f"{store_paths.BROKER_IDS}/") for path in paths), "the broker is registered"
            assert any(path.startswith(f"{store_paths.SCRAM}/") for path in paths), "there is a credential"
            for path in paths:
                found = await acl_of(store, path)
                assert found == ({owner: 31} if is_sensitive(path) else {owner: 31, "world:anyone": 1}), path
                if is_sensitive(path):
                    with pytest.raises(AccessDenied, match="its ACL in ZooKeeper does not allow it"):
                        await stranger.get(path)
                    with pytest.raises(AccessDenied):
                        await stranger.children(path)
                else:
                    assert await stranger.get(path) is not None
                for change in (Put(path, b"{}"), Create(f"{path.rstrip('/')}/mine")):
                    with pytest.raises(AccessDenied):
                        await stranger.transact([change])

    run(main)


def node(
    folder: Path, connect: str, settings: dict[str, str], environment: dict[str, str] | None = None
) -> KasparProcess:
    return KasparProcess(folder, overrides={"zookeeper.connect": connect, **settings}, environment=environment)


def settings_file(folder: Path, settings: dict[str, str]) -> Path:
    folder.mkdir()
    file = folder / "server.properties"
    own = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}", "log.dirs": str(folder / "data")}
    write_properties(file, {**own, **settings})
    return file


def add_user(folder: Path, connect: str, settings: dict[str, str]) -> None:
    """A SCRAM user, so that there is a secret in ZooKeeper."""
    file = folder / "format.properties"
    write_properties(file, {"node.id": "1", "log.dirs": str(folder / "data"), "zookeeper.connect": connect, **settings})
    assert storage.main(["format", "-c", str(file), "--add-scram", CREDENTIAL]) == 0


def test_broker_with_a_certificate_owns_what_it_creates(
    tmp_path: Path, zookeeper: SecuredZooKeeper, chroot: str
) -> None:
    settings = {**zookeeper.tls(), "zookeeper.set.acl": "true"}
    add_user(tmp_path, zookeeper.secure + chroot, settings)
    with node(tmp_path, zookeeper.secure + chroot, settings) as broker:
        assert create_topic(broker, "first") is ErrorCode.NONE
        produce(broker, "first")
        check_nodes_belong_to(zookeeper, chroot, settings, "x509:CN=broker")
        broker.restart()
        assert create_topic(broker, "second") is ErrorCode.NONE
        produce(broker, "first")
        assert {"first", "second"} <= topics(broker)


def test_open_cluster_is_locked_and_opened_while_its_broker_runs(
    tmp_path: Path,
    zookeeper: SecuredZooKeeper,
    chroot: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, login = zookeeper.plain + chroot, {JAAS: login_module("broker")}
    migrate = ["--zookeeper.connect", connect, "--zookeeper.acl"]
    add_user(tmp_path, connect, login)
    with node(tmp_path, connect, {}, zookeeper.kafka_opts) as broker:
        assert create_topic(broker, "first") is ErrorCode.NONE

        async def add_foreign_node() -> None:
            async with connected(connect, {}) as stranger:
                await stranger.transact([Create(FOREIGN), Create(f"{FOREIGN}/node")])

        run(add_foreign_node)
        assert zookeeper_security_migration.main([*migrate, "secure"]) == 1
        assert "requires an identity at ZooKeeper" in capsys.readouterr().err
        monkeypatch.setenv("KAFKA_OPTS", zookeeper.kafka_opts["KAFKA_OPTS"])
        assert zookeeper_security_migration.main([*migrate, "secure"]) == 0
        assert "can be changed by sasl:broker only" in capsys.readouterr().out
        monkeypatch.delenv("KAFKA_OPTS")
        check_nodes_belong_to(zookeeper, chroot, login, "sasl:broker")
        assert create_topic(broker, "second") is ErrorCode.NONE
        produce(broker, "second")

        async def foreign_nodes_are_open() -> None:
            async with connected(connect, {}) as stranger:
                await stranger.transact([Put(f"{FOREIGN}/node", b"mine"), Create(f"{FOREIGN}/other")])

        run(foreign_nodes_are_open)
        anonymous = refusal(settings_file(tmp_path / "other", {"node.id": "2", "zookeeper.connect": connect}))
        assert "its ACL in ZooKeeper does not allow it to this broker" in anonymous
        assert JAAS in anonymous
        file = tmp_path / "login.properties"
        write_properties(file, {JAAS: login_module("broker")})
        assert zookeeper_security_migration.main([*migrate, "unsecure", "--zk-tls-config-file", str(file)]) == 0
        assert "are open to everyone" in capsys.readouterr().out

        async def anybody_writes() -> None:
            async with connected(connect, {}) as stranger:
                assert await acl_of(stranger, store_paths.SCRAM) == {"world:anyone": 31}
                await stranger.transact([Create(f"{store_paths.SCRAM}/mine")])

        run(anybody_writes)
        assert "secret" not in broker.log_text()


@pytest.mark.long
def test_brokers_of_one_identity_change_what_others_have_created(
    tmp_path: Path, zookeeper: SecuredZooKeeper, chroot: str
) -> None:
    """The second one removes the seat of the first, which has ended, and takes it."""
    settings = {**zookeeper.tls(), "zookeeper.set.acl": "true", JAAS: login_module("broker")}
    first, second = (
        node(tmp_path / number, zookeeper.secure + chroot, {**settings, "node.id": number}) for number in ("1", "2")
    )
    with first, second:
        assert create_topic(second, "first") is ErrorCode.NONE
        first.kill()
        wait_until(lambda: create_topic(second, "second") is ErrorCode.NONE, "the other one controls", seconds=120)
        first.start()
        assert {"first", "second"} <= topics(first)


def test_metadata_is_moved_with_the_protection_of_the_broker(
    tmp_path: Path, zookeeper: SecuredZooKeeper, chroot: str
) -> None:
    file, connect = tmp_path / "server.properties", zookeeper.secure + chroot
    settings = {"node.id": "1", "log.dirs": str(tmp_path / "data"), **zookeeper.tls(), "zookeeper.set.acl": "true"}
    write_properties(file, settings)
    assert storage.main(["format", "-c", str(file), "--add-scram", CREDENTIAL]) == 0
    assert cli.main(["metadata", "move", str(file), "--zookeeper", connect]) == 0

    async def main() -> None:
        async with connected(connect, zookeeper.tls()) as store:
            assert await acl_of(store, f"{store_paths.SCRAM}/alice") == {"x509:CN=broker": 31}
            assert await acl_of(store, store_paths.FENCE) == {"x509:CN=broker": 31, "world:anyone": 1}

    run(main)
    assert cli.main(["metadata", "move", str(file), "--undo"]) == 0


def test_running_broker_without_access_waits_for_it(tmp_path: Path, zookeeper: SecuredZooKeeper, chroot: str) -> None:
    """As while ZooKeeper is away: nothing can be changed, records are served, and it recovers by itself."""
    connect = zookeeper.plain + chroot

    def lock(is_secure: bool) -> None:
        async def main() -> None:
            async with connected(connect, {JAAS: login_module("other")}) as store:
                await set_all_acls(store, is_secure=is_secure)

        run(main)

    with node(tmp_path, connect, {}) as broker:
        broker.expect_error("the controller has lost the metadata store")
        assert create_topic(broker, "first") is ErrorCode.NONE
        lock(True)
        assert create_topic(broker, "second") is ErrorCode.NOT_CONTROLLER
        produce(broker, "first")
        lock(False)
        wait_until(lambda: create_topic(broker, "second") is ErrorCode.NONE, "the topic can be created")


@pytest.mark.long
def test_broker_whose_login_is_revoked_comes_back_when_it_is_accepted(tmp_path: Path) -> None:
    zookeeper = unless_missing(lambda: secured_zookeeper(tmp_path / "zookeeper"))
    users = tmp_path / "zookeeper" / "server.conf"
    accepted = users.read_text()
    with serving(zookeeper.server), node(tmp_path / "broker", zookeeper.plain, {}, zookeeper.kafka_opts) as broker:
        for error in (
            "this broker is no longer registered",
            "the controller has lost the metadata store",
            "no longer the controller",
        ):
            broker.expect_error(error)
        assert create_topic(broker, "first") is ErrorCode.NONE
        for text in (accepted.replace("user_broker", "user_nobody"), accepted):
            zookeeper.server.stop()
            users.write_text(text)
            zookeeper.server.start()
            zookeeper.server.wait_serving()
            if text is not accepted:
                wait_until(lambda: "cannot join its cluster yet" in broker.log_text(), "the broker waits", seconds=120)
        wait_until(lambda: create_topic(broker, "second") is ErrorCode.NONE, "the broker is back", seconds=120)
        assert "does not accept the login of broker" in broker.log_text()
        assert "Traceback" not in broker.log_text()


def test_broker_with_a_wrong_password_does_not_start(tmp_path: Path, zookeeper: SecuredZooKeeper) -> None:
    login = {"zookeeper.connect": zookeeper.plain, JAAS: login_module("other", "wrong")}
    sentence = refusal(settings_file(tmp_path / "broker", login))
    assert f"does not accept the login of other: check username and password in {JAAS}" in sentence
    assert "wrong" not in sentence


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"zookeeper.ssl.truststore.location": "strangers.pem"}, "check zookeeper.ssl.truststore.location"),
        ({"zookeeper.ssl.keystore.location": "stranger.pem"}, "check zookeeper.ssl.keystore.location"),
        ({"zookeeper.ssl.keystore.location": ""}, "check zookeeper.ssl.keystore.location"),
        ({"zookeeper.ssl.protocol": "TLSv1.2"}, "check zookeeper.ssl.protocol"),
    ],
    ids=["untrusted server", "untrusted client", "no certificate", "no common TLS"],
)
def test_tls_that_cannot_be_agreed_on_names_the_setting(
    zookeeper: SecuredZooKeeper, changed: dict[str, str], sentence: str
) -> None:
    files = {
        name: str(zookeeper.folder / value) if value.endswith(".pem") else value for name, value in changed.items()
    }
    assert sentence in problem_of(zookeeper.secure, {**zookeeper.tls(), **files})


def test_host_name_is_checked_unless_that_is_off(zookeeper: SecuredZooKeeper) -> None:
    address = zookeeper.secure.replace("localhost", "127.0.0.1")
    assert "its certificate is for another host" in problem_of(address, zookeeper.tls())

    async def main() -> None:
        unchecked = {**zookeeper.tls(), "zookeeper.ssl.endpoint.identification.algorithm": ""}
        async with connected(address, unchecked) as store:
            assert await store.get("/") is not None

    run(main)


def test_key_store_may_be_pkcs12(zookeeper: SecuredZooKeeper) -> None:
    async def main() -> None:
        pkcs12 = {**zookeeper.tls("broker.p12"), "zookeeper.ssl.keystore.password": "store-secret"}
        async with connected(zookeeper.secure, pkcs12) as store:
            await store.transact([Create("/of-pkcs12", ephemeral=True)])

    run(main)
    wrong = {**zookeeper.tls("broker.p12"), "zookeeper.ssl.keystore.password": "wrong-secret"}
    sentence = problem_of(zookeeper.secure, wrong)
    assert "zookeeper.ssl.keystore.location" in sentence
    assert "wrong-secret" not in sentence


@pytest.mark.parametrize("kind", [pytest.param("tls", marks=pytest.mark.long), "sasl", "both"])
def test_session_survives_a_cut_connection(zookeeper: SecuredZooKeeper, chroot: str, kind: str) -> None:
    """A connection that ends in a login or a handshake is no refusal."""
    config = zookeeper.server.config
    port = config.client_port if kind == "sasl" else config.secure_client_port
    settings = {} if kind == "sasl" else zookeeper.tls()
    if kind != "tls":
        settings[JAAS] = login_module("broker")
    assert port is not None

    async def main() -> None:
        with Proxy(zookeeper.server, port=port) as proxy:
            async with connected(proxy.address.replace("127.0.0.1", "localhost") + chroot, settings) as store:
                await store.transact([Create("/mine", b"x" * 100_000, ephemeral=True)])
                session = store.session.id
                for _ in range(2):
                    connections = proxy.connections
                    proxy.cut()
                    await until(lambda: proxy.connections > connections)  # noqa: B023  # awaited at once
                    proxy.cut()  # most often in the middle of what comes first
                await until(lambda: store.is_connected)
                found = await asyncio.gather(*(answered(store, "/mine") for _ in range(200)))
                assert all(found)
                assert store.session.id == session

    run(main)


async def answered(store: ZooKeeperStore, path: str) -> bool:
    while True:
        with contextlib.suppress(KasparError):
            found = await store.get(path)
            return found is not None and found.is_mine


def test_server_that_speaks_only_tls_is_asked_with_its_own_certificate(
    zookeeper: SecuredZooKeeper, tmp_path: Path
) -> None:
    lines = zookeeper.server.config.file.read_text().splitlines()
    (tmp_path / "zoo.cfg").write_text("\n".join(line for line in lines if not line.startswith("clientPort")))
    config = read_config(tmp_path / "zoo.cfg")
    assert config.client_port is None
    server = ZooKeeperServer(config)
    assert config.secure_client_port is not None
    assert server.tls is not None
    assert state_of("127.0.0.1", config.secure_client_port, server.tls) is State.SERVING
