"""The compiled core of the protocol passes its tests in both forms: these run the same tests on the interpreted one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODEC_TESTS = [
    "tests/unit/protocol/test_codec.py",
    "tests/unit/protocol/test_headers_and_api.py",
    "tests/property/test_codecs.py",
]
PRODUCE_TESTS = ["tests/property/test_produce_lanes.py"]
# Between them these have every type of field, nulls, tags, nested and nullable structs.
MESSAGE_TESTS = [
    "tests/unit/protocol/test_messages.py",
    "-k",
    "Metadata or JoinGroup or CreateTopics or ApiVersions or DescribeClientQuotas or StreamsGroupHeartbeat or Voter",
]


@pytest.mark.skipif(os.environ.get("KASPAR_INTERPRETED") == "1", reason="the tests run on the interpreted form anyway")
@pytest.mark.parametrize("tests", [CODEC_TESTS, PRODUCE_TESTS, MESSAGE_TESTS], ids=["codecs", "produce", "messages"])
def test_interpreted_form_passes_the_same_tests(tests: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *tests]
    outcome = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"KASPAR_INTERPRETED": "1"}, capture_output=True, text=True, timeout=110
    )
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-1000:]
    assert " passed" in outcome.stdout
