"""kafka-delegation-tokens: tokens are created, renewed, described and expired, by users who have logged in."""

import re
from pathlib import Path

import pytest

from tests.compat.commands.catalog import CONFIGS, DELEGATION_TOKENS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials, token_credentials
from tests.compat.commands.settling import settle
from tests.peers.kafka_tools import Done

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


def mask(place: Place) -> None:
    place.mask(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE")
    place.mask(r"(?<=tokenId : )\S{22}$", "ID")
    place.mask(r"^\S{22} +(?=\S{88} )", "ID ")
    place.mask(r"(?<![\w+/])[\w+/]{86}==", "HMAC")


def tokens(place: Place, *words: str | Path) -> Done:
    done = place.run(DELEGATION_TOKENS, *words)
    if "--describe" not in words:
        settle(place)
    return done


def test_a_token(places: Places) -> None:
    """Without owners Kafka's command asks for the tokens of nobody and prints none, contrary to its help. Ours prints
    those of the user, so the two are compared while there are none."""

    def scenario(place: Place) -> None:
        mask(place)
        alice, bob = credentials(place, "alice"), credentials(place, "bob")
        renewer = ("--renewer-principal", f"User:{place.name_of('bob')}", "--renewer-principal", "User:eve")
        tokens(place, *alice, "--describe")
        created = tokens(place, *alice, "--create", "--max-life-time-period", "-1", *renewer)
        hmac = re.search(r"[\w+/]{86}==", created.output)
        assert hmac is not None
        token = ("--hmac", hmac[0])
        owner = ("--owner-principal", f"User:{place.name_of('alice')}")
        tokens(place, *alice, "--describe", *owner)
        tokens(place, *alice, "--describe", "--owner-principal", "User:eve")
        tokens(place, *bob, "--renew", *token, "--renew-time-period", "60000")
        tokens(place, *alice, "--expire", *token, "--expiry-time-period", "-1")
        tokens(place, *alice, "--describe")
        tokens(place, *alice, "--renew", *token, "--renew-time-period", "-1")

    same_at_all(places, scenario)


def test_tokens_of_the_user_are_described(places: Places) -> None:
    for place in places[1:]:
        alice = credentials(place, "alice")
        assert place.run_unseen(DELEGATION_TOKENS, *alice, "--create", "--max-life-time-period", "-1").code == 0
        settle(place)
        described = place.run_unseen(DELEGATION_TOKENS, *alice, "--describe").output
        assert f" User:{place.name_of('alice')} " in described


def test_a_token_of_another_owner(places: Places) -> None:
    def scenario(place: Place) -> None:
        mask(place)
        alice = credentials(place, "alice")
        owner = ("--owner-principal", f"User:{place.name_of('bob')}")
        tokens(place, *alice, "--create", "--max-life-time-period", "-1", *owner)
        tokens(place, *alice, "--describe", *owner)

    same_at_all(places, scenario)


def test_a_client_logs_in_with_a_token(places: Places) -> None:
    """It may do what the owner may, except for making further tokens."""

    def scenario(place: Place) -> None:
        mask(place)
        created = tokens(place, *credentials(place, "alice"), "--create", "--max-life-time-period", "-1")
        found = re.search(r"^(\S{22}) +(\S{88}) ", created.output, re.MULTILINE)
        assert found is not None
        client = token_credentials(place, found[1], found[2])
        place.run(CONFIGS, *client, "--describe", "--user", "nobody")
        tokens(place, *client, "--create", "--max-life-time-period", "-1")

    same_at_all(places, scenario)


def test_refused(places: Places) -> None:
    def scenario(place: Place) -> None:
        mask(place)
        alice, carol = credentials(place, "alice"), credentials(place, "carol")
        unknown = ("--hmac", "A" * 86 + "==")
        tokens(place, *alice, "--renew", *unknown, "--renew-time-period", "-1")
        created = tokens(place, *alice, "--create", "--max-life-time-period", "3600000")
        hmac = re.search(r"[\w+/]{86}==", created.output)
        assert hmac is not None
        tokens(place, *carol, "--expire", "--hmac", hmac[0], "--expiry-time-period", "-1")
        tokens(place, *alice, "--create", "--max-life-time-period", "-1", "--renewer-principal", "eve")
        nobody = ("--command-config", place.file("client.id=nobody\n"))
        place.run(DELEGATION_TOKENS, *place.servers, *nobody, "--create", "--max-life-time-period", "-1")
        place.run(DELEGATION_TOKENS, *place.servers, *nobody, "--describe")

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--create", "--describe"),
        ("--command-config", "f", "--hmac", "a"),
        ("--create", "--max-life-time-period", "1"),
        ("--command-config", "f", "--create"),
        ("--command-config", "f", "--renew", "--hmac", "a"),
        ("--command-config", "f", "--expire", "--expiry-time-period", "1"),
        ("--command-config", "f", "--create", "--max-life-time-period", "1", "--hmac", "a"),
        ("--command-config", "f", "--describe", "--hmac", "a"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places[:2], lambda place: place.run(DELEGATION_TOKENS, *NOWHERE, *words))


def test_no_broker(places: Places) -> None:
    def scenario(place: Place) -> None:
        soon = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
        place.run(DELEGATION_TOKENS, *NOWHERE, "--command-config", soon, "--describe")

    same_at_all(places[:2], scenario)
