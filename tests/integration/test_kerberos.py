"""Both sides of a GSSAPI exchange, without a broker between them: what is refused, with tickets of a real KDC."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import parse_jaas
from kaspar.security.krb5_login_module import kerberos_login
from kaspar.security.sasl import InvalidCredentials
from tests.peers.kerberos import FIRST_RUN_SECONDS, Kdc, by_keytab, running_kdc
from tests.peers.observed import wait_until

if TYPE_CHECKING:  # it can be imported where the package is, and that is installed by the tests
    from kaspar.security.kerberos import Acceptor, GssapiClient

pytestmark = pytest.mark.timeout(FIRST_RUN_SECONDS)


class Exchanges:
    def __init__(self, kdc: Kdc) -> None:
        self.kdc = kdc
        self.brokers = kdc.add("kafka/localhost")
        self.clients = kdc.add("alice", "bob", "carol", "dave")

    def acceptor(self, keytab: Path | None = None, principal: str = "kafka/localhost") -> "Acceptor":
        from kaspar.security.kerberos import Acceptor

        return Acceptor(kerberos_login(parse_jaas(by_keytab(keytab or self.brokers, principal))), ["DEFAULT"])

    def client(self, user: str = "alice") -> "GssapiClient":
        from kaspar.security.kerberos import GssapiClient

        return GssapiClient(kerberos_login(parse_jaas(by_keytab(self.clients, user))), "kafka", "localhost")

    def user(self, acceptor: "Acceptor", client: "GssapiClient") -> str:
        server = acceptor.new_server()
        token: bytes | None = client.first()
        while token is not None:
            token = client.evaluate(server.evaluate(token) or b"")
        assert server.is_complete
        assert client.is_complete
        return server.authorization_id


@pytest.fixture(scope="module")
def exchanges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchanges]:
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        yield Exchanges(kdc)


def test_a_token_is_accepted_once(exchanges: Exchanges) -> None:
    acceptor = exchanges.acceptor()
    token = exchanges.client().first()
    acceptor.new_server().evaluate(token)
    with pytest.raises(InvalidCredentials, match="replay"):
        acceptor.new_server().evaluate(token)


def test_a_clock_that_differs_too_much_is_refused(
    exchanges: Exchanges, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = exchanges.client().first()
    strict = exchanges.kdc.write_config(tmp_path / "krb5.conf", " clockskew = 1\n")
    monkeypatch.setenv("KRB5_CONFIG", str(strict))
    time.sleep(2.1)
    with pytest.raises(InvalidCredentials, match="Clock skew too great"):
        exchanges.acceptor().new_server().evaluate(token)


def test_a_key_fetches_another_ticket_when_the_first_has_expired(exchanges: Exchanges) -> None:
    exchanges.kdc.limit_tickets("dave", "2 seconds")
    acceptor = exchanges.acceptor()

    def gets_in() -> bool:
        try:
            return exchanges.user(acceptor, exchanges.client("dave")) == "dave"
        except InvalidCredentials:  # on a machine that is busy for two seconds in the middle of it
            return False

    wait_until(gets_in, "dave gets in")
    time.sleep(2.1)
    wait_until(gets_in, "dave gets in again")


def test_keys_may_be_changed_while_the_broker_runs(exchanges: Exchanges) -> None:
    acceptor = exchanges.acceptor()
    assert exchanges.user(acceptor, exchanges.client("bob")) == "bob"
    exchanges.kdc.change_key("kafka/localhost")
    with pytest.raises(InvalidCredentials, match="Cannot find key"):
        exchanges.user(acceptor, exchanges.client("carol"))
    exchanges.kdc.export(exchanges.brokers, "kafka/localhost")
    assert exchanges.user(acceptor, exchanges.client("carol")) == "carol"
    assert exchanges.user(acceptor, exchanges.client("bob")) == "bob", "by the ticket that it has"


@pytest.mark.parametrize("token", [b"", b"\0", b"\x60" * 100, b"n,,n=alice,r=abc", bytes(100_000)])
def test_what_is_no_token_is_refused(exchanges: Exchanges, token: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        exchanges.acceptor().new_server().evaluate(token)


def test_a_token_of_which_a_part_is_changed_is_refused(exchanges: Exchanges) -> None:
    acceptor, token = exchanges.acceptor(), exchanges.client().first()
    for position in (0, 20, len(token) // 2, len(token) - 1):
        changed = bytearray(token)
        changed[position] ^= 1
        with pytest.raises(InvalidCredentials):
            acceptor.new_server().evaluate(bytes(changed))


def test_a_name_that_a_client_made_up_is_harmless_in_the_log(exchanges: Exchanges) -> None:
    for made_up in (b"\x1b[1mX", b"\xff\xfe\0\n\r"):
        token = bytearray(exchanges.client().first().replace(b"kafka", made_up, 1))
        token[len(token) // 3] ^= 1  # in what is encrypted of the ticket
        with pytest.raises(InvalidCredentials) as refused:
            exchanges.acceptor().new_server().evaluate(bytes(token))
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("choice", [b"", b"\1\0\0", b"\2\0\0\0", b"\4\0\0\0alice", b"\0\0\0\0"])
def test_a_client_that_wants_a_security_layer_is_refused(exchanges: Exchanges, choice: bytes) -> None:
    server, client = exchanges.acceptor().new_server(), exchanges.client()
    assert client.evaluate(server.evaluate(client.first()) or b"") == b""
    server.evaluate(b"")
    assert client._context is not None
    with pytest.raises(InvalidCredentials, match="security layer"):
        server.evaluate(client._context.wrap(choice, False).message)
    assert not server.is_complete


def test_the_authorization_id_of_a_client_is_ignored(exchanges: Exchanges) -> None:
    server, client = exchanges.acceptor().new_server(), exchanges.client()
    client.evaluate(server.evaluate(client.first()) or b"")
    server.evaluate(b"")
    assert client._context is not None
    server.evaluate(client._context.wrap(b"\1\0\0\0admin", False).message)
    assert server.authorization_id == "alice"


def test_messages_out_of_turn_are_refused(exchanges: Exchanges) -> None:
    server, client = exchanges.acceptor().new_server(), exchanges.client()
    client.evaluate(server.evaluate(client.first()) or b"")
    with pytest.raises(InvalidCredentials, match="an empty message was expected"):
        server.evaluate(b"something")
    server.evaluate(b"")
    with pytest.raises(InvalidCredentials):
        server.evaluate(b"not wrapped")


def test_a_broker_that_does_not_know_the_key_is_not_believed(exchanges: Exchanges) -> None:
    server, client = exchanges.acceptor().new_server(), exchanges.client()
    response = bytearray(server.evaluate(client.first()) or b"")
    response[-1] ^= 1
    with pytest.raises(InvalidCredentials, match="cannot be authenticated"):
        client.evaluate(bytes(response))


def test_an_exchange_has_an_end(exchanges: Exchanges) -> None:
    from kaspar.security.kerberos import MAX_ROUNDS

    server = exchanges.acceptor().new_server()
    for _ in range(MAX_ROUNDS):
        with pytest.raises(InvalidCredentials):
            server.evaluate(b"nonsense")
    with pytest.raises(InvalidCredentials, match="has not ended"):
        server.evaluate(exchanges.client().first())


def test_a_key_that_is_not_there_keeps_the_broker_from_starting(exchanges: Exchanges, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"the key of kafka/other@KASPAR\.TEST in FILE:.* cannot be used: No key"):
        exchanges.acceptor(principal="kafka/other")
    with pytest.raises(InvalidSetting, match="not found"):
        exchanges.acceptor(tmp_path / "none.keytab")
