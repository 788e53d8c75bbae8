"""GSSAPI with a real KDC: every client that has it gets in with its tickets, under the name that the rules give; wrong
keys, expired tickets and unknown principals do not.

confluent-kafka is not here: its wheels are built without GSSAPI. kcat stands for librdkafka.
"""

import asyncio
import importlib
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client import Client
from kaspar.client.async_client import AsyncClient
from kaspar.client.blocking import Connection
from kaspar.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kaspar.security.client import ClientSecurity, client_security
from kaspar.tools.reassign_partitions.command import main as reassign_partitions
from tests.compat.security.clients import java_round_trip
from tests.peers.against import broker_to_test
from tests.peers.kafka import ApacheKafka
from tests.peers.kafka_tools import KafkaTools
from tests.peers.kcat import kcat_path
from tests.peers.kerberos import FIRST_RUN_SECONDS, MODULE, Kdc, by_cache, by_keytab, require_cyrus_plugin, running_kdc
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess, write_properties
from tests.peers.wire import free_port

pytestmark = pytest.mark.timeout(FIRST_RUN_SECONDS)

RULES = r"RULE:[2:$1;$2](.*;admin)s/;/-/U,RULE:[1:$1](app\..*)s/app\.(.*)/$1/,DEFAULT"
RECORDS = [f"record-{number}".encode() for number in range(10)]
WITHIN_S = 60.0
REFUSAL = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
LISTENERS = ("GSS", "STALE", "SHORT")
"""STALE: the broker's key is not the KDC's. SHORT: sessions last a minute."""


class Realm:
    """A KDC, the keytabs of the broker and of its clients, and a broker that serves GSSAPI."""

    def __init__(self, kdc: Kdc) -> None:
        self.kdc = kdc
        self.brokers = kdc.add("kafka/localhost")
        self.clients = kdc.add("alice", "app.orders", "bob/admin", "three/parts/long")
        self.stale = kdc.add("stale/localhost")
        kdc.change_key("stale/localhost")
        self.ports: dict[str, int] = {}
        self.broker: BrokerProcess | None = None

    def log_text(self) -> str:
        assert self.broker is not None
        return self.broker.log_text()

    def bootstrap(self, listener: str = "GSS") -> str:
        return f"localhost:{self.ports[listener]}"

    def java(self, principal: str, *, service: str = "kafka") -> dict[str, str]:
        return properties(by_keytab(self.clients, principal), service)

    def settings(self, broker: BrokerProcess) -> dict[str, str]:
        self.ports = {"PLAINTEXT": broker.port, **{name: free_port() for name in LISTENERS}}
        listeners = [f"{name}://{broker.host}:{port}" for name, port in self.ports.items()]
        own = list(listeners)
        protocols = {"PLAINTEXT": "PLAINTEXT", **dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")}
        if isinstance(broker, ApacheKafka):
            own.append(f"CONTROLLER://{broker.host}:{broker.controller_port}")
            protocols["CONTROLLER"] = "PLAINTEXT"
        kafka = by_keytab(self.brokers, "kafka/localhost")
        return {
            "listeners": ",".join(own),
            "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.principal.to.local.rules": _property(RULES, broker),
            "listener.name.gss.gssapi.sasl.jaas.config": kafka,
            "listener.name.short.gssapi.sasl.jaas.config": kafka,
            "listener.name.short.gssapi.connections.max.reauth.ms": "60000",
            # Java's module would log in at the KDC, and its broker would not start.
            "listener.name.stale.gssapi.sasl.jaas.config": by_keytab(
                self.stale, "stale/localhost", "isInitiator=false"
            ),
            "delegation.token.secret.key": "token-secret-key",
            "num.partitions": "1",
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
        }


def properties(jaas: str, service: str = "kafka") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": service,
        "sasl.jaas.config": jaas,
    }


def _property(text: str, broker: BrokerProcess) -> str:
    """As it is written to the properties file of Apache Kafka; ours gets overrides as words of its command line."""
    return text.replace("\\", "\\\\") if isinstance(broker, ApacheKafka) else text


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        yield kdc


@pytest.fixture(scope="module")
def realm(request: pytest.FixtureRequest, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    realm = Realm(kdc)
    broker = broker_to_test(request, tmp_path_factory.mktemp("broker"), {})
    broker.overrides |= realm.settings(broker)
    if isinstance(broker, ApacheKafka):
        broker.jvm_flags += kdc.jvm_flags
    with broker:
        realm.broker = broker
        yield realm


@pytest.fixture(scope="module")
def java(kdc: Kdc) -> Iterator[KafkaTools]:
    with unless_missing(lambda: KafkaTools(*kdc.jvm_flags)) as tools:
        yield tools


def user_of(realm: Realm, security: ClientSecurity | None, listener: str = "GSS") -> str:
    """Whom the broker takes the client for: the owner of a delegation token that it creates."""
    with Client(realm.bootstrap(listener), security=security, timeout_s=30) as client:
        token = client.request(
            CreateDelegationTokenRequest(
                owner_principal_type=None, owner_principal_name=None, renewers=(), max_lifetime_ms=60_000
            ),
            CreateDelegationTokenResponse,
        )
    assert token.error_code == ErrorCode.NONE
    return token.principal_name


def refusal_of(realm: Realm, client: dict[str, str], listener: str = "GSS") -> Refused:
    with pytest.raises(Refused) as refused:
        user_of(realm, client_security(client), listener)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    return refused.value


# -- our own client ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principal", "user"), [("alice", "alice"), ("app.orders", "orders"), ("bob/admin", "BOB-ADMIN")]
)
def test_a_principal_gets_the_name_that_the_rules_give(realm: Realm, principal: str, user: str) -> None:
    assert user_of(realm, client_security(realm.java(principal))) == user


def test_the_tickets_of_a_cache_are_used(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    realm.kdc.fill_cache(tmp_path / "cache", realm.clients, "alice")
    assert user_of(realm, client_security(properties(by_cache(tmp_path / "cache")))) == "alice"
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "cache"))
    assert user_of(realm, client_security(properties(f"{MODULE} required useTicketCache=true;"))) == "alice"


def test_our_commands_log_in_with_the_same_properties(
    realm: Realm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    write_properties(config, realm.java("alice"))
    arguments = ["--bootstrap-server", realm.bootstrap(), "--list", "--command-config", str(config)]
    assert reassign_partitions(arguments) == 0
    assert "No partition reassignments found." in capsys.readouterr().out


def test_the_asynchronous_client_logs_in_and_may_do_so_again(realm: Realm) -> None:
    security = client_security(realm.java("alice"))
    assert security is not None

    async def scenario() -> None:
        async with AsyncClient(realm.bootstrap("SHORT"), security=security) as client:
            await client.request(MetadataRequest(topics=()), MetadataResponse)
            (connection,) = client._connections.values()
            first = connection._log_in_timer
            assert first is not None, "its session ends, as connections.max.reauth.ms says"
            await asyncio.sleep(1.1)  # sooner than after a second a broker takes it for a mistake
            connection._log_in_is_due(security)
            await client.request(MetadataRequest(topics=()), MetadataResponse)
            assert connection._log_in_timer not in (None, first), "another session has begun"
            assert not connection.is_closed

    asyncio.run(scenario())


def test_tokens_come_bare_after_a_handshake_of_version_0(realm: Realm) -> None:
    """The last one has no response: the next frame is that of the next request."""
    security = client_security(realm.java("alice"))
    assert security is not None
    exchange = security.new_login("localhost")
    assert exchange is not None
    with Connection("localhost", realm.ports["GSS"]) as connection:
        connection.request(SaslHandshakeRequest(mechanism="GSSAPI"), 0)
        plain = connection._socket
        plain.sendall(_framed(exchange.first()))
        plain.sendall(_framed(exchange.evaluate(_frame_from(plain)) or b""))
        plain.sendall(_framed(exchange.evaluate(_frame_from(plain)) or b""))
        response = connection.request(MetadataRequest(topics=()))
        assert isinstance(response, MetadataResponse)


def _framed(token: bytes) -> bytes:
    return len(token).to_bytes(4, "big") + token


def _frame_from(plain: socket.socket) -> bytes:
    size = int.from_bytes(plain.recv(4, socket.MSG_WAITALL), "big")
    return plain.recv(size, socket.MSG_WAITALL)


# -- who is refused ----------------------------------------------------------------------------------------------------


def test_a_principal_without_a_ticket_does_not_reach_the_broker(realm: Realm, tmp_path: Path) -> None:
    assert "no Kerberos ticket for kafka@localhost" in str(refusal_of(realm, realm.java("nobody")))
    assert "not found in Kerberos database" in str(refusal_of(realm, realm.java("alice", service="http")))
    assert "No credentials cache" in str(refusal_of(realm, properties(by_cache(tmp_path / "none"))))


def test_an_expired_ticket_is_refused(realm: Realm, tmp_path: Path) -> None:
    realm.kdc.fill_cache(tmp_path / "cache", realm.clients, "alice", "1s")
    expired = properties(by_cache(tmp_path / "cache"))
    wait_until(lambda: not _has_ticket(realm, expired), "the ticket has expired")
    assert "expired" in str(refusal_of(realm, expired))


def _has_ticket(realm: Realm, client: dict[str, str]) -> bool:
    try:
        user_of(realm, client_security(client))
    except Refused:
        return False
    return True


@pytest.mark.parametrize(
    "listener",
    [
        pytest.param("STALE", id="the broker has another key than the KDC"),
        pytest.param("GSS", id="the ticket is one for another service"),
    ],
)
def test_the_broker_refuses_without_saying_why(realm: Realm, listener: str) -> None:
    refused = refusal_of(realm, realm.java("alice", service="stale"), listener)
    assert str(refused).endswith(REFUSAL)


def test_a_name_without_a_short_form_is_refused(realm: Realm) -> None:
    if isinstance(realm.broker, ApacheKafka):
        with pytest.raises(ConnectionError):  # it lets the client in, and then finds that it has no name for it
            user_of(realm, client_security(realm.java("three/parts/long")))
        return
    assert str(refusal_of(realm, realm.java("three/parts/long"))).endswith(REFUSAL)


# -- other clients -----------------------------------------------------------------------------------------------------


@contextmanager
def ticket_cache(realm: Realm, cache: Path, principal: str) -> Iterator[None]:
    """For clients that know only the default one."""
    realm.kdc.fill_cache(cache, realm.clients, principal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5CCNAME", str(cache))
        yield


def test_kafka_python_gets_in(realm: Realm, tmp_path: Path) -> None:
    settings = {
        "bootstrap_servers": realm.bootstrap(),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "bootstrap_timeout_ms": 30_000,
    }
    with ticket_cache(realm, tmp_path / "cache", "alice"):
        producer = KafkaProducer(**settings)
        for sent in [producer.send("kafka-python", record) for record in RECORDS]:
            sent.get(WITHIN_S)
        producer.close()
        consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings)
        assert [message.value for _, message in zip(RECORDS, consumer, strict=False)] == RECORDS
        consumer.close()


def test_aiokafka_gets_in(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # It was imported when the package was not there yet.
    monkeypatch.setattr("aiokafka.conn.gssapi", importlib.import_module("gssapi"))
    settings = {
        "bootstrap_servers": realm.bootstrap(),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_domain_name": "localhost",
    }

    async def scenario() -> list[bytes]:
        async with AIOKafkaProducer(**settings) as producer:
            for record in RECORDS:
                await producer.send_and_wait("aiokafka", record)
        async with AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **settings) as consumer:
            return [(await asyncio.wait_for(consumer.getone(), WITHIN_S)).value for _ in RECORDS]

    with ticket_cache(realm, tmp_path / "cache", "alice"):
        assert asyncio.run(scenario()) == RECORDS


def test_librdkafka_gets_in(realm: Realm, tmp_path: Path) -> None:
    kcat = unless_missing(kcat_path)
    unless_missing(require_cyrus_plugin)
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.kinit.cmd": "true",  # the tickets are there
    }
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    command = [kcat, "-b", realm.bootstrap(), "-t", "librdkafka", *words]
    with ticket_cache(realm, tmp_path / "cache", "alice"):
        subprocess.run([*command, "-P"], input=b"\n".join(RECORDS), check=True, timeout=WITHIN_S)
        consumed = subprocess.run(
            [*command, "-C", "-o", "beginning", "-c", str(len(RECORDS))],
            capture_output=True,
            check=True,
            timeout=WITHIN_S,
        )
    assert consumed.stdout.split() == RECORDS


def test_java_gets_in_with_a_keytab(realm: Realm, java: KafkaTools, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    write_properties(config, realm.java("alice"))
    java_round_trip(java, realm.bootstrap(), config, "java")


def test_java_is_refused(realm: Realm, java: KafkaTools, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    quick = {"default.api.timeout.ms": "10000", "request.timeout.ms": "5000"}
    for listener in ("GSS", "STALE"):
        write_properties(config, {**realm.java("alice", service="stale"), **quick})
        done = java.run(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", realm.bootstrap(listener), "--list", "--command-config", config),
        )
        assert done.code == 1, done
        assert "SaslAuthenticationException" in done.output + done.errors, done


def test_a_refusal_is_one_line_of_the_log(realm: Realm) -> None:
    refusal_of(realm, realm.java("alice", service="stale"), "STALE")
    text = realm.log_text()
    assert "Traceback" not in text
    assert "kvno 2" in text or isinstance(realm.broker, ApacheKafka)
