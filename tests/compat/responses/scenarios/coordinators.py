"""FindCoordinator."""

from tests.compat.responses.api import Api
from tests.compat.responses.scenario import Ask, Scenario
from tests.compat.responses.scenarios.requests import Body

FIND = Api.FIND_COORDINATOR
GROUP, TRANSACTION, SHARE = 0, 1, 2
_WITH_TYPE = range(1, FIND.last + 1)
_SEVERAL = range(4, FIND.last + 1)


def _key(*keys: str, key_type: int = GROUP) -> Body:
    return {"key": keys[0] if keys else "", "key_type": key_type, "coordinator_keys": list(keys)}


SCENARIOS = [
    Scenario("of a group", FIND, [Ask(FIND, _key("group"))]),
    Scenario("of a transaction", FIND, [Ask(FIND, _key("id", key_type=TRANSACTION))], versions=_WITH_TYPE),
    Scenario("of an empty group id", FIND, [Ask(FIND, _key(""))]),
    Scenario("of an empty transactional id", FIND, [Ask(FIND, _key("", key_type=TRANSACTION))], versions=_WITH_TYPE),
    Scenario("of several groups", FIND, [Ask(FIND, _key("a", "b", "c"))], versions=_SEVERAL),
    Scenario("of the same group twice", FIND, [Ask(FIND, _key("a", "a"))], versions=_SEVERAL),
    Scenario("of nothing", FIND, [Ask(FIND, _key())], versions=_SEVERAL),
    Scenario("of a kind that does not exist", FIND, [Ask(FIND, _key("a", key_type=9))], versions=_WITH_TYPE),
    Scenario("of a kind below zero", FIND, [Ask(FIND, _key("a", key_type=-1))], versions=_WITH_TYPE),
    Scenario(
        "of a share group before there were any",
        FIND,
        [Ask(FIND, _key("a", key_type=SHARE))],
        versions=range(1, 6),
    ),
    Scenario("of a share group whose key is none", FIND, [Ask(FIND, _key("a", key_type=SHARE))], versions=[6]),
    Scenario("a body that is cut", FIND, [Ask(FIND, _key("group"), cut=2)]),
]
