"""`python -m bench.up`: the command line, the rounds, and the output of a run."""

import platform
import sys
import time

from bench import report
from bench.command import compared_parser, run_compared
from bench.rows import chosen
from bench.runner import Results, run_in_turn
from bench.up.case import UpCase
from kaspar.web.catalogue import SERVICES

_PROGRAM = "python -m bench.up"
_ROUNDS = 3
_IDLE_S = 60.0
_QUICK_IDLE_S = 20.0


def main() -> int:
    arguments = compared_parser(
        _PROGRAM,
        "How soon 'kaspar up' is ready, and what it takes while nobody uses it.",
        rounds=_ROUNDS,
        example="up-1",
        quick="a third",
    ).parse_args()
    idle_s = _QUICK_IDLE_S if arguments.quick else _IDLE_S
    cases = chosen(
        [UpCase(1, idle_s=idle_s, has_goals=True), UpCase(3, idle_s=idle_s, has_goals=False)], arguments.only
    )
    rounds = arguments.rounds or (1 if arguments.quick else _ROUNDS)

    def run() -> tuple[Results, str]:
        began = time.monotonic()
        results = run_in_turn(cases, rounds, lambda case, side: case.measure(side))
        lines = [
            *report.run_and_machine(_PROGRAM, (time.monotonic() - began) / 60),
            f"Linux {platform.release()}; Python {platform.python_version()}; rounds: {rounds}, each in "
            "an empty folder on a tmpfs",
            f"services: {', '.join(service.title for service in SERVICES.values())}; idle for {idle_s:.0f} s",
            *report.shares_of_others([share for case in cases for share in case.others_shares]),
        ]
        return results, "\n".join(f"- {line}" for line in lines)

    return run_compared(arguments, cases, run, section="up")


if __name__ == "__main__":
    sys.exit(main())
