"""As whom a service's clients log in."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaspar.callers.identities import SERVICE, Identity, NoCredentials, identity_of
from kaspar.security.jaas import parse_jaas
from kaspar.web.identity import ANONYMOUS, Caller, Scheme

BASE = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": "the service's own"}
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('"\\\n\r'), min_size=1)


@given(TEXT, TEXT)
def test_a_name_and_password_reach_the_login_module_as_they_are(name: str, password: str) -> None:
    properties = Identity(name, Scheme.BASIC, password).properties(BASE)
    assert properties["sasl.mechanism"] == "SCRAM-SHA-256"
    module = parse_jaas(properties["sasl.jaas.config"])
    assert module.name.endswith(".ScramLoginModule")
    assert module.options == {"username": name, "password": password}


def test_a_password_is_passed_on_by_plain_unless_a_mechanism_is_set() -> None:
    for base in ({}, {"sasl.mechanism": "OAUTHBEARER"}):
        properties = Identity("alice", Scheme.BASIC, "secret").properties(base)
        assert properties["sasl.mechanism"] == "PLAIN"
        assert parse_jaas(properties["sasl.jaas.config"]).name.endswith(".PlainLoginModule")


def test_a_token_is_passed_on_by_oauthbearer() -> None:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 12.5}).encode()).decode().rstrip("=")
    identity = Identity("alice", Scheme.BEARER, f"x.{payload}.y")
    assert identity.properties(BASE)["sasl.mechanism"] == "OAUTHBEARER"
    assert identity.token_source()("") == (f"x.{payload}.y", 12.5, "alice", {})


def test_a_token_of_another_kind_has_some_lifetime() -> None:
    token, expires_s, name, extensions = Identity(None, Scheme.BEARER, "opaque").token_source()("")
    assert (token, name, extensions) == ("opaque", "", {})
    assert expires_s > 1_700_000_000


def test_requests_are_the_services_own_unless_identities_are_propagated() -> None:
    caller = Caller("alice", Scheme.BASIC, "secret")
    assert identity_of(caller, propagate=False) == SERVICE
    assert identity_of(caller, propagate=True) == Identity("alice", Scheme.BASIC, "secret")
    assert SERVICE.properties(BASE) is BASE


@pytest.mark.parametrize("caller", [ANONYMOUS, Caller("CN=alice", Scheme.CERTIFICATE)])
def test_a_caller_without_credentials_cannot_be_passed_on(caller: Caller) -> None:
    with pytest.raises(NoCredentials, match="no credentials that can be passed to a broker"):
        identity_of(caller, propagate=True)


def test_credentials_are_not_shown() -> None:
    assert "secret" not in repr(Identity("alice", Scheme.BASIC, "secret"))
