"""Which SASL mechanisms a listener serves, and what each needs."""

import sys
from types import SimpleNamespace
from typing import cast

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.security.mechanisms import new_servers
from kaspar.config import BrokerSettings
from kaspar.security.jwks import UNSECURED_HANDLER
from kaspar.security.oauthbearer import OAuthBearerClient, OAuthBearerServer, unsecured_token
from kaspar.security.plain import PlainServer
from kaspar.security.scram import ScramServer

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{}";'
NOBODY = cast(Credentials, SimpleNamespace(scram=lambda *who: None))


def test_every_mechanism_has_its_server() -> None:
    given = BrokerSettings(
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER,PLAIN",
            "listener.name.outside.plain.sasl.jaas.config": JAAS.format("secret"),
            "listener.name.outside.oauthbearer.sasl.server.callback.handler.class": UNSECURED_HANDLER,
        },
        {},
        {},
    )
    servers = new_servers(given, "OUTSIDE", NOBODY)
    assert [(name, type(new())) for name, new in servers.items()] == [
        ("SCRAM-SHA-512", ScramServer),
        ("OAUTHBEARER", OAuthBearerServer),
        ("PLAIN", PlainServer),
    ]
    bearer = servers["OAUTHBEARER"]()
    bearer.evaluate(OAuthBearerClient(unsecured_token({"unsecuredLoginStringClaim_sub": "alice"})).first())
    assert bearer.authorization_id == "alice"


def test_the_login_module_of_a_mechanism_wins_over_that_of_the_listener_and_that_over_all() -> None:
    layers = {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": JAAS.format("of all"),
        "listener.name.l.sasl.jaas.config": JAAS.format("of the listener"),
        "listener.name.l.plain.sasl.jaas.config": JAAS.format("of the mechanism"),
    }
    for name, password in (
        ("listener.name.l.plain.sasl.jaas.config", "of the mechanism"),
        ("listener.name.l.sasl.jaas.config", "of the listener"),
        ("sasl.jaas.config", "of all"),
    ):
        server = new_servers(BrokerSettings(layers, {}, {}), "L", NOBODY)["PLAIN"]()
        server.evaluate(f"\0alice\0{password}".encode())
        assert server.is_complete
        del layers[name]


@pytest.mark.parametrize(
    ("mechanisms", "part"),
    [
        ("DIGEST-MD5", "sasl.enabled.mechanisms contains DIGEST-MD5; supported: PLAIN, SCRAM-SHA-256"),
        ("GSSAPI", "set listener.name.l.gssapi.sasl.jaas.config"),
        ("", "sasl.enabled.mechanisms is empty"),
        ("PLAIN", "set listener.name.l.plain.sasl.jaas.config"),
        ("OAUTHBEARER", "set sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_what_cannot_be_served_keeps_the_broker_from_starting(mechanisms: str, part: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        new_servers(BrokerSettings({"sasl.enabled.mechanisms": mechanisms}, {}, {}), "L", NOBODY)
    assert part in str(refused.value)


KERBEROS = {
    "sasl.enabled.mechanisms": "GSSAPI",
    "listener.name.l.gssapi.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    'keyTab="/none.keytab" principal="kafka/host@REALM";',
}


def test_gssapi_says_how_to_install_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it were not there
    monkeypatch.delitem(sys.modules, "kaspar.security.kerberos", raising=False)
    with pytest.raises(InvalidSetting, match=r"pip install 'kaspar\[kerberos\]'.*libkrb5-dev"):
        new_servers(BrokerSettings(KERBEROS, {}, {}), "L", NOBODY)


def test_gssapi_needs_its_own_login_module() -> None:
    given = {**KERBEROS, "listener.name.l.gssapi.sasl.jaas.config": JAAS.format("secret")}
    with pytest.raises(InvalidSetting, match=r"GSSAPI needs com\.sun\.security\.auth\.module\.Krb5LoginModule"):
        new_servers(BrokerSettings(given, {}, {}), "L", NOBODY)
