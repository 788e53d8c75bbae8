"""Every scenario at every version, on both brokers."""

import struct
from typing import Any

import pytest

from tests.compat.responses.api import Api
from tests.compat.responses.conftest import Pair
from tests.compat.responses.messages import decode_response
from tests.compat.responses.scenario import Scenario
from tests.compat.responses.scenarios import SCENARIOS
from tests.compat.responses.wire import Connection

CASES = [
    pytest.param(scenario, version, id=f"{scenario.slug}-v{version}")
    for scenario in SCENARIOS
    for version in scenario.tested_versions()
]


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_responses_match_apache_kafka(scenario: Scenario, version: int, pair: Pair) -> None:
    pair.check_responses(scenario, version)


def test_versions_under_test_are_those_that_apache_kafka_serves(pair: Pair) -> None:
    request = struct.pack(">hhih", Api.API_VERSIONS.key, 0, 1, -1)
    with Connection(pair.kafka.peer.host, pair.kafka.peer.port) as connection:
        connection.send(request)
        _, response = decode_response(Api.API_VERSIONS, 0, connection.receive())
    served: dict[int, Any] = {entry["api_key"]: entry for entry in response["api_keys"]}
    assert {api: served[api.key]["max_version"] for api in Api} == {api: api.last for api in Api}
    firsts = {api: served[api.key]["min_version"] for api in Api}
    assert firsts == {api: 0 if api is Api.PRODUCE else api.first for api in Api}
