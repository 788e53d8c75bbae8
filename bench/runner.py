"""Runs cases round by round, with alternating sides, and keeps every value.

The side that goes first changes with every round. A case that fails is reported with its reason, and the others still
run: a row of the table contains a measurement or that reason, never an estimate.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from subprocess import TimeoutExpired
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaException

from bench.cases import CaseOf
from bench.programs import LoadError
from bench.rows import Named, WithRows, figure
from bench.sides import Role
from tests.peers.process import BrokerStartError

_WORTH_SAYING = 0.05
_DISTURBED = 0.2
_FAILURES = (LoadError, BrokerStartError, KafkaException, TimeoutExpired, OSError)


class AnyBench(Protocol):
    """What the runner needs of the context that it passes to the cases."""

    patience: int
    others_shares: list[float]


class AnySide(Protocol):
    @property
    def role(self) -> Role: ...
    @property
    def name(self) -> str: ...


BenchT = TypeVar("BenchT", bound=AnyBench)
SideT = TypeVar("SideT", bound=AnySide)


@dataclass(slots=True)
class Results:
    """The values of all rounds by role and row name, and by row name the reason if there are none."""

    values: dict[Role, dict[str, list[float]]] = field(default_factory=lambda: {role: {} for role in Role})
    failures: dict[str, str] = field(default_factory=dict)
    others_shares: list[float] = field(default_factory=list)  # for each measurement kept, the share of others

    def add(self, role: Role, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.values[role].setdefault(name, []).append(value)

    def fail(self, case: WithRows, reason: str) -> None:
        for row in case.rows:
            self.failures[row.name] = reason
            for by_row in self.values.values():
                by_row.pop(row.name, None)


class TitledSide(Protocol):
    @property
    def role(self) -> Role: ...
    @property
    def title(self) -> str: ...


TitledT = TypeVar("TitledT", bound=TitledSide, covariant=True)


class CaseWithSides(WithRows, Named, Protocol[TitledT]):
    """A case that compares two sides of its own."""

    @property
    def sides(self) -> Sequence[TitledT]: ...


ComparedT = TypeVar("ComparedT", bound=CaseWithSides[TitledSide])


def run_in_turn(
    cases: Sequence[ComparedT], rounds: int, measure: Callable[[ComparedT, Any], Mapping[str, float]]
) -> Results:
    """Run cases that have their own sides. `measure` is called with a case and one of its sides."""
    results = Results()
    began = time.monotonic()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}  ({(time.monotonic() - began) / 60:.1f} min so far)", flush=True)
        for round_number in range(1, rounds + 1):
            for side in case.sides if round_number % 2 else reversed(case.sides):
                try:
                    values = measure(case, side)
                except _FAILURES as error:
                    results.fail(case, f"{side.title}: {str(error).strip().splitlines()[0]}")
                    print(f"    FAILED {side.title}: {error}", flush=True)
                    break
                shown = "  ".join(f"{figure(values[row.name])} {row.unit}" for row in case.rows)
                print(f"    round {round_number}  {side.title:30} {shown}", flush=True)
                results.add(side.role, values)
            if case.rows[0].name in results.failures:
                break
    return results


def run_cases(bench: BenchT, sides: Sequence[SideT], cases: Sequence[CaseOf[BenchT, SideT]], rounds: int) -> Results:
    results = Results()
    began = time.monotonic()
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}  ({(time.monotonic() - began) / 60:.1f} min so far)", flush=True)
        side = sides[0]
        try:
            for side in sides:
                case.set_up(bench, side)
                case.warm_up(bench, side)
            for round_number in range(rounds):
                for side in sides if round_number % 2 == 0 else reversed(sides):
                    _measure(bench, case, side, round_number, results)
        except _FAILURES as error:
            results.fail(case, f"{side.name}: {_in_one_line(error)}")
            print(f"    FAILED {side.name}: {error}", flush=True)
        finally:
            _tear_down(bench, case, sides)
    return results


def _measure(bench: BenchT, case: CaseOf[BenchT, SideT], side: SideT, round_number: int, results: Results) -> None:
    """Measure until a try is undisturbed, at most a few times. Keeps the least disturbed one, whatever its result."""
    tries: list[tuple[float, Mapping[str, float]]] = []
    while not tries or (tries[-1][0] > _DISTURBED and len(tries) <= bench.patience):
        loads_before = len(bench.others_shares)
        values = case.measure(bench, side)
        loads = bench.others_shares[loads_before:]
        others = max(loads, default=0.0)
        tries.append((others, values))
        note = f"  (others took {others:.0%} of the machine)" if others > _WORTH_SAYING else ""
        print(f"    round {round_number + 1}  {side.name:11}  {_shown(case, values)}{note}", flush=True)
    others, values = min(tries, key=lambda one: one[0])
    if loads:
        results.others_shares.append(others)
    results.add(side.role, values)


def _shown(case: CaseOf[BenchT, SideT], values: Mapping[str, float]) -> str:
    parts = ((row.name.removeprefix(case.name).strip("_"), figure(values[row.name]), row.unit) for row in case.rows)
    return "  ".join(f"{name} {value} {unit}".strip() for name, value, unit in parts)


def _in_one_line(error: BaseException) -> str:
    """The first and the last line: the failure, and the end of the broker's log if the text contains it."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"


def _tear_down(bench: BenchT, case: CaseOf[BenchT, SideT], sides: Sequence[SideT]) -> None:
    for side in sides:
        try:
            case.tear_down(bench, side)
        except _FAILURES as error:
            print(f"    FAILED to tidy up after {case.name} on {side.name}: {error}", flush=True)
