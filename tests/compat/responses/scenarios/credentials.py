"""SCRAM credentials, and delegation tokens as far as a listener without authentication has them."""

from tests.compat.responses.api import Api
from tests.compat.responses.scenario import Ask, Eventually, Scenario
from tests.compat.responses.scenarios.requests import Body

DESCRIBE, ALTER = Api.DESCRIBE_USER_SCRAM_CREDENTIALS, Api.ALTER_USER_SCRAM_CREDENTIALS
SHA_256, SHA_512 = 1, 2


def _set(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> Body:
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": b"s" * 32,
    }


def _remove(user: str, mechanism: int = SHA_256) -> Body:
    return {"name": user, "mechanism": mechanism}


def _alter(*upsertions: Body, deletions: tuple[Body, ...] = ()) -> Ask:
    return Ask(ALTER, {"deletions": list(deletions), "upsertions": list(upsertions)})


def _describe(*users: str) -> Ask:
    return Ask(DESCRIBE, {"users": [{"name": user} for user in users]})


def _until(user: str, path: str, value: object) -> Eventually:
    """A change takes a moment to be seen."""
    return Eventually(DESCRIBE, {"users": [{"name": user}]}, f"results.0.{path}", value)


SCENARIOS = [
    Scenario(
        "users come, are described, and go",
        ALTER,
        [
            _alter(_set("one"), _set("two", SHA_512, 8192)),
            _describe("one", "two"),
            _alter(_set("one", SHA_512, 16384)),
            _describe("one"),
            _alter(_set("one", iterations=5000)),
            _describe("one"),
            _alter(deletions=(_remove("one"), _remove("two", SHA_512))),
            _alter(deletions=(_remove("one", SHA_512),)),
            _until("one", "error_code", "RESOURCE_NOT_FOUND"),
            _describe("one", "two"),
        ],
    ),
    Scenario(
        "what cannot be stored",
        ALTER,
        [
            _alter(_set("few", iterations=4095), _set("many", iterations=16385), _set("unknown", 7), _set("none", 0)),
            _alter(_set("")),
            _alter(_set("twice"), _set("twice", SHA_512)),
            _alter(_set("both"), deletions=(_remove("both"),)),
            _alter(deletions=(_remove("absent"), _remove("absent-too", 9))),
            _alter(),
        ],
    ),
    Scenario("users that do not exist", DESCRIBE, [_describe("nobody"), _describe("")]),
    Scenario("a user twice", DESCRIBE, [_describe("nobody", "somebody", "nobody")]),
    Scenario("all users when there are none", DESCRIBE, [Ask(DESCRIBE, {"users": None}), _describe()]),
    # Of the responses that refuse to create, renew or expire one, kio cannot read the timestamps, which are -1.
    Scenario(
        "a client that has not authenticated describes them",
        Api.DESCRIBE_DELEGATION_TOKEN,
        [Ask(Api.DESCRIBE_DELEGATION_TOKEN, {"owners": None})],
    ),
]
