"""Which SASL mechanisms a listener serves, and what each needs."""

from types import SimpleNamespace
from typing import cast

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.security.jwks import UNSECURED_HANDLER
from kaspar.broker.security.mechanisms import new_servers
from kaspar.config import BrokerSettings
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
        ("GSSAPI", "sasl.enabled.mechanisms contains GSSAPI; PLAIN, SCRAM-SHA-256"),
        ("", "sasl.enabled.mechanisms is empty"),
        ("PLAIN", "set listener.name.l.plain.sasl.jaas.config"),
        ("OAUTHBEARER", "set sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_what_cannot_be_served_keeps_the_broker_from_starting(mechanisms: str, part: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        new_servers(BrokerSettings({"sasl.enabled.mechanisms": mechanisms}, {}, {}), "L", NOBODY)
    assert part in str(refused.value)
