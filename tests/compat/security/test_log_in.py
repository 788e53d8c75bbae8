"""Every security protocol and SASL mechanism with every client that has it: right credentials get in, wrong ones get
the client's own authentication error.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from kaspar.base.errors import KasparError
from kaspar.client import Client
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.security.client import client_security
from tests.compat.drivers.api import ClientError
from tests.compat.security.clients import CLIENTS, PATIENT, RECORDS, REFUSALS, Clients, all_clients, java_round_trip
from tests.compat.security.secured import PASSWORDS, RIGHT, WRONG, Login, Secured, secured_broker
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing
from tests.peers.process import write_properties


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(request, tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def java(secured: Secured) -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as tools:
        yield tools


@pytest.fixture(scope="module")
def clients(secured: Secured) -> Iterator[Clients]:
    with all_clients(secured) as running:
        yield running


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
@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_right_credentials_get_in(secured: Secured, clients: Clients, client: str, login: Login) -> None:
    topic = secured.new_topic(f"{client}-{login}-{login.user}")
    assert clients.round_trip(client, secured, login, topic) == RECORDS


@pytest.mark.parametrize("what", sorted(WRONG))
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=pytest.mark.long if name in PATIENT else ()) for name in CLIENTS]
)
def test_wrong_credentials_do_not(secured: Secured, clients: Clients, client: str, what: str) -> None:
    topic = secured.new_topic(f"{client}-{what.replace(' ', '-')}")
    with pytest.raises(REFUSALS) as refusal:
        clients.round_trip(client, secured, WRONG[what], topic, retries=0)
    if WRONG[what].mechanism and isinstance(refusal.value, ClientError):
        assert refusal.value.code in ("SASL_AUTHENTICATION_FAILED", "KafkaJSSASLAuthenticationError")


@pytest.mark.parametrize("login", some(RIGHT))
def test_java_gets_in_with_right_credentials(secured: Secured, java: KafkaTools, login: Login, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    write_properties(config, {name: text.replace("\\", "\\\\") for name, text in secured.java(login).items()})
    topic, servers = f"java-{login}-{login.user}", ("--bootstrap-server", secured.bootstrap(login))
    created = java.run(
        "org.apache.kafka.tools.TopicCommand", *servers, "--create", "--topic", topic, "--command-config", config
    )
    assert created.code == 0, created
    java_round_trip(java, secured.bootstrap(login), config, topic)


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
