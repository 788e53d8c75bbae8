"""The console commands over SASL_SSL: as a user with permissions, without them, and with a wrong password."""

from pathlib import Path

from tests.compat.commands.catalog import ACLS, CONSOLE_CONSUMER, CONSOLE_PRODUCER
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials
from tests.compat.commands.settling import settle
from tests.compat.tools.comparing import run_ours
from tests.peers.sasl_ssl import MECHANISM

LOG_PREFIX = r"^(\[\S.*?\] )?ERROR (\S+ - )?"
CLIENT_LOGS = r"^\[(Producer|Consumer) .*\n"
WRONG_PASSWORD = (
    "SaslAuthenticationException: Authentication failed during authentication due to invalid credentials with SASL "
    f"mechanism {MECHANISM}"
)
QUICK = ("--timeout", "5", "--max-block-ms", "5000")


def produce(place: Place, user: tuple[str | Path, ...], *more: str) -> None:
    topic = place.name_of("orders")
    place.run(CONSOLE_PRODUCER, *user, "--topic", topic, *QUICK, *more, standard_input=b"one\n")


def consume(place: Place, user: tuple[str | Path, ...], *more: str) -> None:
    topic = ("--topic", place.name_of("orders"), "--from-beginning")
    place.run(CONSOLE_CONSUMER, *user, *topic, "--max-messages", "1", "--timeout-ms", "15000", *more)


def deny(place: Place, user: str, *words: str) -> None:
    done = run_ours(ACLS, *place.servers, "--add", "--deny-principal", f"User:{place.name_of(user)}", *words)
    assert done.code == 0, done
    settle(place)


def test_users_with_and_without_permissions(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(LOG_PREFIX, "")
        place.mask(CLIENT_LOGS, "")
        alice = credentials(place, "alice")
        produce(place, alice)
        consume(place, alice, "--group", place.name_of("group"))
        deny(place, "alice", "--operation", "Read", "--group", place.name_of("forbidden"))
        consume(place, alice, "--group", place.name_of("forbidden"))
        deny(place, "alice", "--operation", "Write", "--operation", "Read", "--topic", place.name_of("orders"))
        produce(place, alice)
        produce(place, alice, "--sync")
        consume(place, alice, "--partition", "0")

    same_at_all(places, scenario)


def test_wrong_password(places: Places) -> None:
    def scenario(place: Place) -> None:
        mallory = credentials(place, "mallory", password="wrong")
        topic = ("--topic", place.name_of("orders"))
        for done in (
            place.run_unseen(CONSOLE_PRODUCER, *mallory, *topic, *QUICK, standard_input=b"one\n"),
            place.run_unseen(CONSOLE_CONSUMER, *mallory, *topic, "--timeout-ms", "15000"),
        ):
            place.see([done.code, done.output, WRONG_PASSWORD in done.errors])

    same_at_all(places, scenario)
