"""How connections to ZooKeeper are protected, from settings and from Kafka's environment variable."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.config import BrokerConfig
from kaspar.security.certificates import CertificateAuthority
from kaspar.security.zookeeper import ZooKeeperSecurity, is_definite, tls_problem, zookeeper_security

JAAS = "kaspar.zookeeper.sasl.jaas.config"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
LOGIN = f'{MODULE} required username="broker" password="hush";'


@pytest.fixture(autouse=True)
def _has_sasl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, str]:
    authority = CertificateAuthority.new()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "broker.PEM").write_bytes(authority.issue("broker").key_and_chain)
    return {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(tmp_path / "broker.PEM"),
        "zookeeper.ssl.truststore.location": str(tmp_path / "ca.pem"),
    }


def security(settings: Mapping[str, str], options: str = "") -> ZooKeeperSecurity:
    return zookeeper_security(BrokerConfig.of(settings), {"KAFKA_OPTS": options})


def context_of(settings: Mapping[str, str]) -> ssl.SSLContext:
    new_context = security(settings).new_context
    assert new_context is not None
    return new_context()


def test_nothing_is_protected_by_default() -> None:
    assert security({}) == ZooKeeperSecurity(None, None, sets_acls=False)


def test_host_names_are_checked_by_default(stores: dict[str, str]) -> None:
    context = context_of(stores)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    unchecked = context_of({**stores, "zookeeper.ssl.endpoint.identification.algorithm": ""})
    assert (unchecked.check_hostname, unchecked.verify_mode) == (False, ssl.CERT_REQUIRED)


def test_protocols_are_those_of_the_list_then_the_single_one(stores: dict[str, str]) -> None:
    def versions(**more: str) -> tuple[int, int]:
        context = context_of({**stores, **{f"zookeeper.ssl.{name.replace('_', '.')}": more[name] for name in more}})
        return context.minimum_version, context.maximum_version

    older, newer = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert versions() == (older, newer)
    assert versions(protocol="TLSv1.2") == (older, older)
    assert versions(protocol="TLSv1.2", enabled_protocols="TLSv1.3") == (newer, newer)


def test_stores_are_read_again_for_every_connection(stores: dict[str, str]) -> None:
    new_context = security(stores).new_context
    assert new_context is not None
    Path(stores["zookeeper.ssl.truststore.location"]).write_text("")
    with pytest.raises(InvalidSetting, match=r"ca\.pem has no readable PEM certificate"):
        new_context()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"zookeeper.ssl.keystore.location": "nowhere.pem"}, "^zookeeper.ssl.keystore.location nowhere.pem cannot be"),
        ({"zookeeper.ssl.keystore.password": "x"}, "not encrypted, and zookeeper.ssl.keystore.password is given"),
        ({"zookeeper.ssl.truststore.type": "JKS"}, "^zookeeper.ssl.truststore.location .* it is not a key store"),
        ({"zookeeper.ssl.cipher.suites": "FAST"}, "^zookeeper.ssl.cipher.suites contains FAST"),
        ({"zookeeper.ssl.crl.enable": "true"}, "zookeeper.ssl.crl.enable=true is not supported"),
        ({"zookeeper.ssl.ocsp.enable": "true"}, "zookeeper.ssl.ocsp.enable=true is not supported"),
        ({"zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"}, "which has no TLS"),
        ({"zookeeper.clientCnxnSocket": "Fast"}, "zookeeper.clientCnxnSocket"),
        ({"zookeeper.ssl.protocol": "TLSv1"}, "zookeeper.ssl.protocol"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(
    stores: dict[str, str], changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        security({**stores, **changed})


# -- the login ---------------------------------------------------------------------------------------------------------


def test_login_is_that_of_the_setting() -> None:
    login = security({JAAS: LOGIN}).login
    assert login is not None
    assert (login.username, login.password, login.source) == ("broker", "hush", JAAS)
    assert "hush" not in repr(login)


def test_login_is_that_of_kafkas_jaas_file(tmp_path: Path) -> None:
    file = tmp_path / "a file.conf"
    file.write_text(f"KafkaServer {{ some.Module required; }};\nClient {{ {LOGIN} }};\nMine {{ {LOGIN} }};\n")
    option = f"'-Djava.security.auth.login.config={file}'"
    login = security({}, f"-Xmx1g {option}").login
    assert login is not None
    assert login.source == f"section Client of {file}"
    mine = security({}, f"{option} -Dzookeeper.sasl.clientconfig=Mine").login
    assert mine is not None
    assert mine.source == f"section Mine of {file}"
    assert security({}, f"{option} -Dzookeeper.sasl.client=false").login is None
    setting = security({JAAS: LOGIN}, option).login
    assert setting is not None
    assert setting.source == JAAS
    file.write_text("KafkaClient { some.Module required; };")
    assert security({}, option).login is None


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (None, "", "login.conf, which KAFKA_OPTS names, cannot be read: No such file"),
        ("Client {", "", "a section of the JAAS file does not end"),
        ("Client", "", "a section of a JAAS file has the form"),
        (f"Client {{ {LOGIN} {LOGIN} }};", "", "must have one login module, and has 2"),
        ("Other { };", "-Dzookeeper.sasl.clientconfig=Mine", "has no section Mine"),
        ("Client { com.sun.security.auth.module.Krb5LoginModule required; };", "", "by DIGEST-MD5 only"),
        (f"Client {{ {MODULE} required username=a; }};", "", "section Client of .* lacks password"),
        (f'Client {{ {MODULE} required username=a password="ß"; }};', "", "must be ASCII"),
        ("", "'", "KAFKA_OPTS has a quote that does not end"),
    ],
)
def test_login_that_cannot_be_used_is_a_sentence(tmp_path: Path, text: str | None, options: str, sentence: str) -> None:
    file = tmp_path / "login.conf"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSetting, match=sentence) as raised:
        security({}, f"-Djava.security.auth.login.config={file} {options}")
    assert "hush" not in str(raised.value)


def test_setting_that_is_no_login_module_is_a_sentence_without_the_secret() -> None:
    with pytest.raises(InvalidSetting, match=f"{JAAS} cannot be used: ") as raised:
        security({JAAS: f'{MODULE} required password="hush"'})
    assert "hush" not in str(raised.value)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KasparError, match=r"pip install 'kaspar\[zookeeper\]'"):
        security({JAAS: LOGIN})


def test_tls_by_properties_of_the_jvm_is_refused_rather_than_left_out(stores: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting, match=r"KAFKA_OPTS sets zookeeper\.client\.secure, which only a JVM reads"):
        security({}, "-Dzookeeper.client.secure=true")
    security(stores, "-Dzookeeper.client.secure=true")


def test_acls_need_an_identity(stores: dict[str, str]) -> None:
    acls = {"zookeeper.set.acl": "true"}
    with pytest.raises(InvalidSetting, match=r"zookeeper\.set\.acl=true requires an identity at ZooKeeper"):
        security(acls)
    with pytest.raises(InvalidSetting, match="requires an identity"):
        security({**stores, **acls, "zookeeper.ssl.keystore.location": ""})
    assert security({**stores, **acls}).sets_acls
    assert security({JAAS: LOGIN, **acls}).sets_acls


# -- failures ----------------------------------------------------------------------------------------------------------


def _alert(reason: str) -> ssl.SSLError:
    problem = ssl.SSLError(1, reason)
    problem.reason = reason
    return problem


@pytest.mark.parametrize(
    ("problem", "sentence", "definite"),
    [
        (_alert("TLSV1_ALERT_PROTOCOL_VERSION"), "zookeeper.ssl.protocol", True),
        (_alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "zookeeper.ssl.keystore.location", True),
        (_alert("TLSV1_ALERT_UNKNOWN_CA"), "zookeeper.ssl.keystore.location", True),
        (_alert("SSLV3_ALERT_HANDSHAKE_FAILURE"), "zookeeper.ssl.cipher.suites", True),
        (_alert("WRONG_VERSION_NUMBER"), "secureClientPort", True),
        (_alert("SOMETHING_ELSE"), "the TLS handshake failed (something else)", True),
        (ssl.SSLEOFError(8, "EOF"), "it closed the connection in the TLS handshake", False),
        (ConnectionResetError(), "it closed the connection in the TLS handshake", False),
        (TimeoutError(), "it does not respond to the TLS handshake", False),
    ],
    ids=repr,
)
def test_failed_handshake_names_a_setting(problem: OSError, sentence: str, definite: bool) -> None:
    assert sentence in tls_problem(problem)
    assert is_definite(problem) is definite
