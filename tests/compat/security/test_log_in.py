"""Every security protocol and SASL mechanism with every client that has it: right credentials get in, wrong ones get
the client's own authentication error.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as PythonKafkaError

from kaspar.base.errors import KasparError
from kaspar.client import Client
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.security.client import client_security
from tests.compat.security.secured import PASSWORDS, RIGHT, WRONG, Login, Secured, secured_broker
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing
from tests.peers.process import write_properties

RECORDS = [f"record-{number}".encode() for number in range(10)]
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(request, tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def java(secured: Secured) -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as tools:
        yield tools


# -- what each client does: produce ten records and consume them, or raise ---------------------------------------------


def confluent(secured: Secured, login: Login, topic: str) -> list[bytes]:
    settings = secured.librdkafka(login)
    problems: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": problems.append})
    for record in RECORDS:
        producer.produce(topic, record)
    deadline = time.monotonic() + WITHIN_S
    while producer.flush(0.2) and time.monotonic() < deadline:
        for problem in problems:
            # What TLS 1.3 says of a client's certificate comes after the handshake: librdkafka calls it _TRANSPORT.
            if problem.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or "SSL alert" in problem.str():
                raise KafkaException(problem)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < len(RECORDS) and time.monotonic() < deadline:
        found += [message.value() or b"" for message in consumer.consume(10, 0.5) if message.error() is None]
    consumer.close()
    return found


def kafka_python(secured: Secured, login: Login, topic: str) -> list[bytes]:
    settings = {
        "bootstrap_servers": secured.bootstrap(login),
        "security_protocol": login.protocol,
        "ssl_cafile": secured.file(login.ca),
        "ssl_certfile": secured.file(login.certificate) if login.certificate else None,
        "ssl_keyfile": secured.file(login.certificate) if login.certificate else None,
        "sasl_mechanism": login.mechanism or None,
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
        "bootstrap_timeout_ms": 10_000,
    }
    producer = KafkaProducer(**settings)
    for sent in [producer.send(topic, record) for record in RECORDS]:
        sent.get(WITHIN_S)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings)
    found = [message.value for _, message in zip(RECORDS, consumer, strict=False)]
    consumer.close()
    return found


def aiokafka(secured: Secured, login: Login, topic: str) -> list[bytes]:
    return asyncio.run(_aiokafka(secured, login, topic))


async def _aiokafka(secured: Secured, login: Login, topic: str) -> list[bytes]:
    context = None
    if login.is_encrypted:
        context = ssl.create_default_context(cafile=secured.file(login.ca))
        if login.certificate:
            context.load_cert_chain(secured.file(login.certificate))
    settings = {
        "bootstrap_servers": secured.bootstrap(login),
        "security_protocol": login.protocol,
        "ssl_context": context,
        "sasl_mechanism": login.mechanism or "PLAIN",
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
        "request_timeout_ms": 10_000,
    }
    producer = AIOKafkaProducer(**settings)
    try:  # one that cannot start has to be stopped, too
        await producer.start()
        for record in RECORDS:
            await producer.send_and_wait(topic, record)
    finally:
        await producer.stop()
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
        return [(await asyncio.wait_for(consumer.getone(), WITHIN_S)).value for _ in RECORDS]


PYTHON_CLIENTS: dict[str, Callable[[Secured, Login, str], list[bytes]]] = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
REFUSALS = (KafkaException, PythonKafkaError, AioKafkaError, ssl.SSLError)


def new_topic(secured: Secured, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": secured.broker.bootstrap})
    for done in admin.create_topics([NewTopic(name, 1, 1)]).values():
        done.result()
    return name


# -- the tests ---------------------------------------------------------------------------------------------------------


def some(logins: Sequence[Login]) -> list[ParameterSet]:
    """All of them, most of them in the long form only: one with each protocol stays."""
    short: set[str] = set()
    chosen = []
    for login in logins:
        is_long = login.listener in short or (login.mechanism == "PLAIN" and login.is_encrypted)
        marks = [pytest.mark.long] if is_long else []
        short |= set() if is_long else {login.listener}
        chosen.append(pytest.param(login, marks=marks, id=f"{login}-{login.user}"))
    return chosen


@pytest.mark.parametrize("login", some(RIGHT))
@pytest.mark.parametrize("client", sorted(PYTHON_CLIENTS))
def test_right_credentials_get_in(secured: Secured, client: str, login: Login) -> None:
    topic = new_topic(secured, f"{client}-{login}-{login.user}")
    assert PYTHON_CLIENTS[client](secured, login, topic) == RECORDS


@pytest.mark.parametrize("what", sorted(WRONG))
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=[] if name == "confluent" else pytest.mark.long) for name in PYTHON_CLIENTS]
)
def test_wrong_credentials_do_not(secured: Secured, client: str, what: str) -> None:
    topic = new_topic(secured, f"{client}-{what.replace(' ', '-')}")
    with pytest.raises(REFUSALS):
        PYTHON_CLIENTS[client](secured, WRONG[what], topic)


@pytest.mark.parametrize("login", some(RIGHT))
def test_java_gets_in_with_right_credentials(secured: Secured, java: KafkaTools, login: Login, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    write_properties(config, {name: text.replace("\\", "\\\\") for name, text in secured.java(login).items()})
    topic, servers = f"java-{login}-{login.user}", ("--bootstrap-server", secured.bootstrap(login))
    created = java.run(
        "org.apache.kafka.tools.TopicCommand", *servers, "--create", "--topic", topic, "--command-config", config
    )
    assert created.code == 0, created
    produced = java.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "10", "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", secured.bootstrap(login), "--command-config", config),
    )
    assert produced.code == 0, produced
    consumed = java.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *servers,
        *("--topic", topic, "--from-beginning", "--max-messages", "10", "--timeout-ms", "60000"),
        *("--command-config", config),
    )
    assert len(consumed.output.splitlines()) == 10, consumed


@pytest.mark.parametrize("what", sorted(WRONG))
def test_java_is_refused_with_wrong_credentials(secured: Secured, java: KafkaTools, what: str, tmp_path: Path) -> None:
    login = WRONG[what]
    config = tmp_path / "client.properties"
    write_properties(config, {**secured.java(login), "default.api.timeout.ms": "10000", "request.timeout.ms": "5000"})
    done = java.run(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", secured.bootstrap(login), "--list", "--command-config", config),
    )
    assert done.code == 1, done
    wanted = "SaslAuthenticationException" if login.mechanism else "SslAuthenticationException"
    assert wanted in done.output + done.errors, done


@pytest.mark.parametrize("login", RIGHT, ids=str)
def test_our_own_client_takes_the_properties_of_java(secured: Secured, login: Login) -> None:
    with Client(secured.bootstrap(login), security=client_security(secured.java(login))) as client:
        response = client.request(MetadataRequest(topics=()), MetadataResponse)
    assert [broker.port for broker in response.brokers] == [secured.ports[login.listener]]


@pytest.mark.parametrize("what", sorted(WRONG))
def test_our_own_client_is_refused_too(secured: Secured, what: str) -> None:
    login = WRONG[what]
    with (
        pytest.raises((KasparError, ConnectionError)),
        Client(secured.bootstrap(login), security=client_security(secured.java(login)), timeout_s=10) as client,
    ):
        client.request(MetadataRequest(topics=()), MetadataResponse)


def test_no_secret_is_in_the_log(secured: Secured) -> None:
    text = secured.broker.log_text()
    assert "failed to authenticate" in text or "Failed authentication" in text, "the tests above have logged in"
    for secret in (*PASSWORDS.values(), "PRIVATE KEY"):
        assert secret not in text
