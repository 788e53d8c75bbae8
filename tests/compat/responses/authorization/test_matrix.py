"""Every API with and without permission, as Apache Kafka responds: the first and the last version, with --long all.

The ACL APIs themselves are the same in all of their versions: the last stands for them.
"""

import pytest

from kaspar.broker.served_apis import SERVED
from tests.compat.responses.api import Api
from tests.compat.responses.authorization.acl_scenarios import SCENARIOS as ACL_SCENARIOS
from tests.compat.responses.authorization.matrix import SCENARIOS
from tests.compat.responses.conftest import Pair
from tests.compat.responses.scenario import Scenario

CASES = [
    pytest.param(
        scenario,
        version,
        id=f"{scenario.slug}-v{version}",
        marks=() if version in usual(scenario.tested_versions()) else pytest.mark.long,
    )
    for scenarios, usual in (
        (ACL_SCENARIOS, lambda versions: versions[-1:]),
        (SCENARIOS, lambda versions: (versions[0], versions[-1])),
    )
    for scenario in scenarios
    for version in scenario.tested_versions()
]
WITHOUT_PERMISSIONS = {
    *(Api.API_VERSIONS, Api.SASL_HANDSHAKE, Api.SASL_AUTHENTICATE),
    *(Api.GET_TELEMETRY_SUBSCRIPTIONS, Api.PUSH_TELEMETRY),
}
"""They are for everyone."""
OF_AUTHENTICATED_CLIENTS = {
    Api.CREATE_DELEGATION_TOKEN,
    Api.RENEW_DELEGATION_TOKEN,
    Api.EXPIRE_DELEGATION_TOKEN,
    Api.DESCRIBE_DELEGATION_TOKEN,
}
"""Nobody authenticates here (tests/unit/broker/authorization/test_delegation_tokens.py, tests/compat/security)."""


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_responses_match_apache_kafka_with_an_authorizer(scenario: Scenario, version: int, secured_pair: Pair) -> None:
    secured_pair.check_responses(scenario, version)


def test_the_matrix_has_every_api_that_kafka_has_too() -> None:
    ours = {api for api in Api if api.key in SERVED}
    assert {scenario.api for scenario in SCENARIOS} == ours - WITHOUT_PERMISSIONS - OF_AUTHENTICATED_CLIENTS
