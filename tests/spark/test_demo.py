"""`kaspar demo` with Spark: counts come back from the topic that the query writes, and nothing stays behind."""

import os
import re
import signal
import subprocess
import threading

import pytest

from tests.integration.commands import PROGRAMS
from tests.spark.marked import Mark

SECONDS = 110.0


@pytest.mark.timeout(300)
def test_demo_counts_views_and_ends_cleanly_when_interrupted() -> None:
    mark = Mark()
    demo = subprocess.Popen(
        [PROGRAMS / "kaspar", "demo"],
        env=mark.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    too_late = threading.Timer(SECONDS, demo.kill)
    too_late.start()
    with demo:
        assert demo.stdout is not None
        shown: list[str] = []
        for line in demo.stdout:  # ends with the demo
            shown.append(line)
            if re.search(r"window from [\d:]+: [\d,]+ views of \d+ pages", line):
                break
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does: to all of them
        rest, errors = demo.communicate(timeout=SECONDS)
    too_late.cancel()
    everything = "".join(shown) + rest
    assert demo.returncode == 0, everything + errors
    ended = re.search(r"([\d,]+) records produced, ([\d,]+) counted by Spark\. Goodbye\.", everything)
    assert ended is not None, everything
    produced, counted = (int(number.replace(",", "")) for number in ended.groups())
    assert 0 < counted <= produced
    assert mark.processes() == []
