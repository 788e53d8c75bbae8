"""All cases."""

from bench.tools.case import ToolCase
from bench.tools.perf import perf_tools
from bench.tools.start_up import start_ups


def all_cases() -> list[ToolCase]:
    return [*start_ups(), *perf_tools()]
