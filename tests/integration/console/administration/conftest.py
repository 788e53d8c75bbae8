"""One broker with an authorizer, for all tests of this folder: the tests themselves may do everything, alice, who logs
in on another listener, may use one topic and one group."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.client.admin.acls import create_acls
from kaspar.client.admin.session import Admin
from kaspar.console.running import ConsoleServer
from kaspar.security.client import client_security
from kaspar.web.host_thread import HostThread
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.sasl_ssl import AUTHORIZER
from tests.peers.wire import free_port

RECORDS = 10
CHANGES = {"X-Kaspar-Console": "1"}
HERS, HER_GROUP = "hers", "her-readers"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{_PLAIN} username="alice" password="secret";',
}


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    process: KasparProcess
    sasl_port: int

    @property
    def bootstrap(self) -> str:
        return self.process.bootstrap


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    port, sasl_port = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    overrides = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_PLAIN} user_alice="secret";',
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    with KasparProcess(tmp_path_factory.mktemp("console-broker"), port=port, overrides=overrides) as process:
        _create_topic(process.bootstrap, HERS)
        with Admin(process.bootstrap) as admin:
            acls = [
                Acl(kind, name, PatternType.LITERAL, "User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW)
                for kind, name in ((ResourceType.TOPIC, HERS), (ResourceType.GROUP, HER_GROUP))
            ]
            assert set(create_acls(admin, acls).values()) == {None}
        yield SecuredBroker(process, sasl_port)


@pytest.fixture
def admin(broker: SecuredBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as session:
        yield session


@pytest.fixture
def alice(broker: SecuredBroker) -> Iterator[Admin]:
    with Admin(f"127.0.0.1:{broker.sasl_port}", security=client_security(_ALICE)) as session:
        yield session


@pytest.fixture(scope="session")
def new_topic(broker: SecuredBroker) -> Callable[..., str]:
    """Topics with ten records in each partition."""
    numbers = itertools.count()

    def create(partitions: int = 1) -> str:
        name = f"orders-{next(numbers)}"
        _create_topic(broker.bootstrap, name, partitions)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for partition in range(partitions):
            for number in range(RECORDS):
                producer.produce(name, str(number), partition=partition, timestamp=1_000 * (number + 1))
        assert producer.flush(30) == 0
        return name

    return create


def _create_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])[name].result(30)


@pytest.fixture(scope="session")
def consoles(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Consoles"]:
    folder = tmp_path_factory.mktemp("console")
    credentials = folder / "credentials"
    credentials.write_text("alice:secret\n")
    fast = {"lag.interval.ms": "500"}
    own = ConsoleServer(
        {
            **fast,
            "listeners": "http://127.0.0.1:0",
            "bootstrap.servers": broker.bootstrap,
            "kaspar.console.audit.file": str(folder / "audit.log"),
            "kaspar.console.pipelines.folder": str(folder / "pipelines"),
        }
    )
    with _running(own) as url:
        # alice's console comes second: its callers are known to the brokers
        secured = ConsoleServer(
            {
                **fast,
                "listeners": "http://127.0.0.1:0",
                "bootstrap.servers": f"127.0.0.1:{broker.sasl_port}",
                "kaspar.console.pipelines.folder": str(folder / "pipelines"),
                "authentication.method": "BASIC",
                "kaspar.http.credentials.file": str(credentials),
                "kaspar.propagate.identity": "true",
                **{f"client.{name}": value for name, value in _ALICE.items()},
            }
        )
        with _running(secured) as secured_url:
            yield Consoles(url, secured_url, folder / "audit.log", folder / "pipelines")


@contextmanager
def _running(server: ConsoleServer) -> Iterator[str]:
    thread = HostThread([server])
    thread.start()
    try:
        (url,) = thread.urls["console"]
        yield url
    finally:
        thread.stop()


@dataclass(frozen=True, slots=True)
class Consoles:
    url: str
    """Of the console where nobody logs in."""
    secured_url: str
    """Of the one where alice logs in."""
    audit_file: Path
    pipelines: Path

    def audited(self, action: str, resource: str, outcome: str = "done") -> dict[str, str]:
        """The last line of the audit log about this change. It is written behind the response."""
        wanted = (action, resource, outcome)
        found: list[dict[str, str]] = []

        def is_written() -> bool:
            lines = (json.loads(line) for line in self.audit_file.read_text().splitlines())
            found[:] = [line for line in lines if (line["action"], line["resource"], line["outcome"]) == wanted]
            return bool(found)

        wait_until(is_written, f"{wanted} is in the audit log")
        return found[-1]


@pytest.fixture
def api(consoles: Consoles) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{consoles.url}/api", headers=CHANGES, timeout=30) as client:
        yield client


@pytest.fixture
def alices_api(consoles: Consoles) -> Iterator[httpx.Client]:
    login = ("alice", "secret")
    with httpx.Client(base_url=f"{consoles.secured_url}/api", headers=CHANGES, auth=login, timeout=30) as client:
        yield client
