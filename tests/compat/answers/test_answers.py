"""Every scenario at every version, on both brokers."""

import json
import os
import struct
from typing import Any

import pytest

from tests.compat.answers.api import Api
from tests.compat.answers.compare import differences
from tests.compat.answers.conftest import Pair
from tests.compat.answers.differences import KNOWN, judge
from tests.compat.answers.masks import masked
from tests.compat.answers.messages import decode_answer
from tests.compat.answers.scenario import Scenario
from tests.compat.answers.scenarios import SCENARIOS
from tests.compat.answers.wire import Connection

CASES = [
    pytest.param(scenario, version, id=f"{scenario.slug}-v{version}")
    for scenario in SCENARIOS
    for version in scenario.tested_versions()
]


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_answers_as_apache_kafka_does(scenario: Scenario, version: int, pair: Pair) -> None:
    of_kafka, of_subject = (masked(transcript, scenario) for transcript in pair.play(scenario, version))
    if os.environ.get("KASPAR_SHOW_ANSWERS"):
        print(json.dumps(of_kafka, indent=1, default=str))
    judgement = judge(differences(of_kafka, of_subject), scenario, version, () if pair.same else KNOWN)
    problems = [str(difference) for difference in judgement.unexpected]
    problems += [f"no longer differs, so must go from the known differences: {entry}" for entry in judgement.stale]
    if problems:
        pytest.fail(f"{scenario.api.title} v{version}, {scenario.name}:\n" + "\n".join(problems), pytrace=False)


def test_versions_under_test_are_those_that_apache_kafka_serves(pair: Pair) -> None:
    request = struct.pack(">hhih", Api.API_VERSIONS.key, 0, 1, -1)
    with Connection(pair.kafka.peer.host, pair.kafka.peer.port) as connection:
        connection.send(request)
        _, answer = decode_answer(Api.API_VERSIONS, 0, connection.receive())
    served: dict[int, Any] = {entry["api_key"]: entry for entry in answer["api_keys"]}
    assert {api: served[api.key]["max_version"] for api in Api} == {api: api.last for api in Api}
    firsts = {api: served[api.key]["min_version"] for api in Api}
    assert firsts == {api: 0 if api is Api.PRODUCE else api.first for api in Api}
