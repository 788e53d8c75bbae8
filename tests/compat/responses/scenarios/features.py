"""UpdateFeatures. The levels are as before after each scenario: others depend on them."""

from tests.compat.responses.api import Api
from tests.compat.responses.scenario import Ask, Scenario
from tests.compat.responses.scenarios.requests import Body

UPDATE = Api.UPDATE_FEATURES
UPGRADE, SAFE, UNSAFE = 1, 2, 3
GROUP, TRANSACTION = "group.version", "transaction.version"


def _feature(name: str, level: int, upgrade_type: int = UPGRADE) -> Body:
    return {
        "feature": name,
        "max_version_level": level,
        "upgrade_type": upgrade_type,
        "allow_downgrade": upgrade_type != UPGRADE,
    }


def _update(*features: Body, **more: object) -> Ask:
    return Ask(UPDATE, {"feature_updates": list(features), **more})


_BACK = Ask(UPDATE, {"feature_updates": [_feature(TRANSACTION, 2), _feature(GROUP, 1)]}, version=1)
_TYPED = (1, 2)

SCENARIOS = [
    Scenario("to the level that it has", UPDATE, [_update(_feature(TRANSACTION, 2))]),
    Scenario("down without saying so", UPDATE, [_update(_feature(TRANSACTION, 1))]),
    Scenario("down and up again", UPDATE, [_update(_feature(TRANSACTION, 1, SAFE)), _BACK]),
    Scenario("down to nothing", UPDATE, [_update(_feature(GROUP, 0, UNSAFE)), _BACK], versions=_TYPED),
    Scenario(
        "several, of which one cannot be",
        UPDATE,
        [_update(_feature(TRANSACTION, 1, SAFE), _feature(GROUP, 7)), _BACK],
    ),
    Scenario("higher than there is", UPDATE, [_update(_feature(TRANSACTION, 9))]),
    Scenario("a level below zero", UPDATE, [_update(_feature(TRANSACTION, -1, SAFE))]),
    Scenario("a feature that does not exist", UPDATE, [_update(_feature("nothing.such", 1))]),
    Scenario("a feature that does not exist, to nothing", UPDATE, [_update(_feature("nothing.such", 0, SAFE))]),
    Scenario("a way that does not exist", UPDATE, [_update(_feature(TRANSACTION, 1, 0))], versions=_TYPED),
    Scenario(
        "up as a downgrade",
        UPDATE,
        [_update(_feature(TRANSACTION, 1, SAFE)), _update(_feature(TRANSACTION, 2, SAFE)), _BACK],
        versions=_TYPED,
    ),
    Scenario(
        "only to validate",
        UPDATE,
        [
            _update(_feature(TRANSACTION, 1, SAFE), validate_only=True),
            _update(_feature(TRANSACTION, 7), validate_only=True),
        ],
        versions=_TYPED,
    ),
    Scenario("no features", UPDATE, [_update()]),
    Scenario("the same twice", UPDATE, [_update(_feature(TRANSACTION, 2), _feature(TRANSACTION, 2))]),
    Scenario("an empty name", UPDATE, [_update(_feature("", 1))]),
]
