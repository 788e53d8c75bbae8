"""Clients at a secured listener: each produces ten records and consumes them, or raises its own error."""

import asyncio
import gc
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as PythonKafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.compat.drivers.api import ClientError
from tests.compat.drivers.foreign import franz_command, kafkajs_command
from tests.compat.drivers.lines import LinesProcess
from tests.compat.security.secured import OAUTHBEARER, Login, Secured
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing

RECORDS = [f"record-{number}".encode() for number in range(10)]
WITHIN_S = 60.0
REFUSALS = (KafkaException, PythonKafkaError, AioKafkaError, ssl.SSLError, ClientError)

RoundTrip = Callable[[Secured, Login, str], list[bytes]]


def confluent(secured: Secured, login: Login, topic: str) -> list[bytes]:
    settings: dict[str, Any] = {**secured.librdkafka(login)}
    if login.mechanism == OAUTHBEARER:
        settings["oauth_cb"] = lambda config: (login.password, time.time() + 600)
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


class Bearer(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


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
        "sasl_oauth_token_provider": Bearer(login.password) if login.mechanism == OAUTHBEARER else None,
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


class AioBearer(AioTokenProvider):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


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
        "sasl_oauth_token_provider": AioBearer(login.password) if login.mechanism == OAUTHBEARER else None,
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


PYTHON_CLIENTS: dict[str, RoundTrip] = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
COMMANDS: dict[str, Callable[[str], list[str]]] = {"franz-go": franz_command, "kafkajs": kafkajs_command}
CLIENTS = (*PYTHON_CLIENTS, *COMMANDS)
PATIENT = ("kafka-python", "aiokafka")
"""Those that try again for as long as they may after a refusal."""


class Clients:
    """All of them by name. One of another language is a process, which starts when it is first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._processes: dict[str, LinesProcess] = {}

    def round_trip(self, name: str, secured: Secured, login: Login, topic: str, *, retries: int = 5) -> list[bytes]:
        """`retries`: of KafkaJS, which takes a refused certificate for a broker that is not there yet."""
        if name in PYTHON_CLIENTS:
            return PYTHON_CLIENTS[name](secured, login, topic)
        if name not in self._processes:
            command = unless_missing(lambda: COMMANDS[name](self._bootstrap))
            self._processes[name] = LinesProcess(name, command)
        received = self._processes[name].call(
            "secured_round_trip",
            servers=secured.bootstrap(login),
            ca=secured.file(login.ca) if login.is_encrypted else "",
            certificate=secured.file(login.certificate) if login.certificate else "",
            mechanism=login.mechanism,
            user=login.user,
            password=login.password,
            topic=topic,
            values=[record.decode() for record in RECORDS],
            retries=retries,
        )
        return [value.encode() for value in received]

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        with warnings.catch_warnings():  # a client of kafka-python that is refused leaves its sockets open
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@contextmanager
def all_clients(secured: Secured) -> Iterator[Clients]:
    clients = Clients(secured.broker.bootstrap)
    try:
        yield clients
    finally:
        clients.close()


def java_round_trip(java: KafkaTools, bootstrap: str, config: Path, topic: str) -> None:
    """Kafka's own commands write ten records and read them back, with the settings of `config`."""
    servers = ("--bootstrap-server", bootstrap)
    produced = java.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "10", "--record-size", "100", "--throughput", "-1"),
        *(*servers, "--command-config", config),
    )
    assert produced.code == 0, produced
    consumed = java.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*servers, "--topic", topic, "--from-beginning", "--max-messages", "10", "--timeout-ms", "60000"),
        *("--command-config", config),
    )
    assert len(consumed.output.splitlines()) == 10, consumed
