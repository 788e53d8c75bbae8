"""The table of results, for the terminal and for docs/benchmarks.md."""

import datetime
import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from bench import programs
from bench.rows import Ratio, Row, WithRows, figure, meets_goal
from bench.runner import Results
from bench.sides import Role

_BEGIN = "<!-- begin results: {name} -->"
_END = "<!-- end results: {name} -->"


class Titled(Protocol):
    """A side of the comparison, as the table names it."""

    @property
    def role(self) -> Role: ...
    @property
    def title(self) -> str: ...


class Described(Titled, Protocol):
    @property
    def runtime(self) -> Callable[[], str]: ...


def conditions(
    sides: Sequence[Described],
    rounds: int,
    minutes: float,
    *,
    on_tmpfs: bool,
    others: Sequence[float],
    program: str = "python -m bench",
) -> str:
    """What a reader needs to know to interpret or reproduce the results."""
    place = "a tmpfs" if on_tmpfs else "the disk"
    lines = [
        *run_and_machine(program, minutes),
        f"Linux {platform.release()}; data on {place}; rounds: {rounds}, the brokers in turn, after a warm-up",
        *(f"{side.title}: {side.runtime()}" for side in sides),
        f"client: {programs.librdkafka_version()}",
        *shares_of_others(others),
    ]
    return "\n".join(f"- {line}" for line in lines)


def run_and_machine(program: str, minutes: float) -> list[str]:
    with open("/proc/cpuinfo") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown CPU")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    command = " ".join([program, *sys.argv[1:]])
    return [
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, `{command}`, {minutes:.0f} minutes",
        f"{os.cpu_count()} cores ({model}), shared by brokers and load; {memory:.0f} GB of memory",
    ]


def shares_of_others(others: Sequence[float]) -> list[str]:
    if not others:
        return []
    average, worst = statistics.fmean(others), max(others)
    return [f"other processes took {average:.0%} of the machine on average, {worst:.0%} at worst"]


def table(sides: Sequence[Titled], cases: Sequence[WithRows], results: Results, *, with_goals: bool) -> str:
    """Markdown: one table for each section, with medians of all rounds, and for two sides with ratios."""
    rows = [row for case in cases for row in case.rows]
    parts = []
    for section in dict.fromkeys(row.section for row in rows):
        of_section = [row for row in rows if row.section == section]
        header = [section, "unit", *(side.title for side in sides)]
        if len(sides) == 2:
            header += [of_section[0].comparison.value, "best", "worst"] + (["goal", "met"] if with_goals else [])
        elif with_goals and any(row.goal is not None for row in of_section):
            header += ["goal", "met"]
        lines = [header, ["---"] * 2 + ["---:"] * (len(header) - 2)]
        width = len(header)
        lines += [_line(row, sides, results)[:width] for row in of_section]
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts)


class Compared(WithRows, Protocol):
    """A case that compares two sides of its own."""

    @property
    def sides(self) -> Sequence[Titled]: ...


def tables_by_section(cases: Sequence[Compared], results: Results) -> str:
    """One table for each section, whose cases compare the same two sides."""
    sections = dict.fromkeys(case.rows[0].section for case in cases)
    of_sections = ([case for case in cases if case.rows[0].section == section] for section in sections)
    return "\n\n".join(table(group[0].sides, group, results, with_goals=True) for group in of_sections)


def _line(row: Row, sides: Sequence[Titled], results: Results) -> list[str]:
    start = [row.title, row.unit]
    if row.name in results.failures:
        reason = results.failures[row.name][:300].replace("|", "/")
        return [*start, f"failed: {reason}"] + [""] * (len(sides) - 1 + (5 if len(sides) == 2 else 2))
    values = {side.role: results.values[side.role][row.name] for side in sides}
    line = start + [figure(statistics.median(values[side.role])) for side in sides]
    if len(sides) == 2:
        line += _ratio_cells(row, values[Role.CANDIDATE], values[Role.REFERENCE])
    else:
        line += [row.goal_text(), _met(row, values.get(Role.CANDIDATE, []), [])]
    return line


def _ratio_cells(row: Row, candidate: Sequence[float], reference: Sequence[float]) -> list[str]:
    ratio = Ratio.of(row, candidate, reference)
    if ratio is None:
        return ["", "", "", row.goal_text(), ""]
    compared = (row.compared_text(each) for each in (ratio.median, ratio.best, ratio.worst))
    return [*compared, row.goal_text(), _met(row, candidate, reference)]


def _met(row: Row, candidate: Sequence[float], reference: Sequence[float]) -> str:
    if row.goal is None or not candidate:
        return ""
    return "yes" if meets_goal(row, candidate, reference) else "**no**"


def summary(cases: Sequence[WithRows], results: Results) -> str:
    """One sentence: how many goals were met, and which were not."""
    missed, met = [], 0
    for row in (row for case in cases for row in case.rows if row.goal is not None):
        if row.name in results.failures:
            missed.append(row.name)
            continue
        # A row with only one side has a goal for its value.
        reference = results.values[Role.REFERENCE].get(row.name, [])
        if meets_goal(row, results.values[Role.CANDIDATE][row.name], reference):
            met += 1
        else:
            missed.append(row.name)
    sentence = f"{met} of {met + len(missed)} goals met."
    return sentence + (f" Not met: {', '.join(missed)}." if missed else "")


def write_into(document: Path, name: str, text: str) -> None:
    """Replace the part of the document between the markers for `name`. Everything else in it is written by people."""
    begin, end = _BEGIN.format(name=name), _END.format(name=name)
    before, found_begin, rest = document.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{document} has no place for these results: '{begin}' and '{end}' mark it")
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}")
