"""The levels of Kafka's features: the levels in each release, and what a level requires of other features.

These are the levels of Apache Kafka 4.3 (its MetadataVersion and Feature), whatever a broker supports.
"""

import argparse
from collections.abc import Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import KasparError
from kaspar.tools.argparse4j import Argparse4jOptions
from kaspar.tools.java_numbers import parse_int

METADATA_VERSION: Final = "metadata.version"
_FIRST_LEVEL: Final = 7
_RELEASES: Final = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0"),
)
"""The names of the levels of metadata.version, in order."""
LATEST_PRODUCTION: Final = "4.3-IV0"
"""Later levels are not released yet."""

_INTRODUCED: Final = {
    "kraft.version": {1: "3.9-IV0"},
    "transaction.version": {2: "4.0-IV2"},
    "group.version": {1: "4.0-IV0"},
    "eligible.leader.replicas.version": {1: "4.1-IV0"},
    "share.version": {1: "4.2-IV0"},
    "streams.version": {1: "4.2-IV1"},
}
"""For each feature and level, the release that made the level its default. Every feature also has level 0."""
_LAST_LEVEL: Final = {feature: max(levels) for feature, levels in _INTRODUCED.items()}
_NEEDS: Final = {("eligible.leader.replicas.version", 1): ((METADATA_VERSION, 23),)}


class UnknownLevel(KasparError):
    """An unknown feature, level or release. The messages are those of Kafka's commands."""


class Release(NamedTuple):
    """A level of metadata.version, with the name by which it was requested."""

    name: str
    level: int

    def levels(self) -> dict[str, int]:
        """The levels of all features except metadata.version, in Kafka's order."""
        return {
            feature: max(
                (level for level, release in levels.items() if parse_release(release).level <= self.level), default=0
            )
            for feature, levels in _INTRODUCED.items()
        }


def parse_release(name: str) -> Release:
    """Parse a level such as 3.9-IV0, or a release such as 3.9 or 3.9.1, which means its last level."""
    if name in _RELEASES:
        return Release(name, _FIRST_LEVEL + _RELEASES.index(name))
    released = _RELEASES[: _RELEASES.index(LATEST_PRODUCTION) + 1]
    short = ".".join(name.split("-")[0].split(".")[:2])
    found = [index for index, each in enumerate(released) if each.partition("-")[0] == short]
    if "-" in name or not found:
        supported = ", ".join(_RELEASES)
        raise UnknownLevel(f"Unknown metadata.version '{name}'. Supported metadata.version are: {supported}")
    return Release(name, _FIRST_LEVEL + found[-1])


def level_text(feature: str, level: int) -> str:
    """A level as text. For metadata.version, its name: 4.3-IV0."""
    if feature != METADATA_VERSION:
        return str(level)
    index = level - _FIRST_LEVEL
    return _RELEASES[index] if 0 <= index < len(_RELEASES) else f"UNKNOWN [{level}]"


def parse_level(text: str) -> tuple[str, int]:
    """feature=level"""
    name, equals, level = text.partition("=")
    if not equals:
        raise UnknownLevel(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = parse_int(level.strip())
    except ValueError:
        number = 1 << 15
    if not -(1 << 15) <= number < 1 << 15:
        raise UnknownLevel(f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short.")
    return name.strip(), number


def mapping_lines(release: str) -> list[str]:
    """The output of `version-mapping`."""
    found = parse_release(release)
    levels = found.levels().items()
    return [f"{METADATA_VERSION}={found.level} ({found.name})", *(f"{name}={level}" for name, level in levels)]


def dependency_lines(texts: Sequence[str]) -> list[str]:
    """The output of `feature-dependencies` for these feature=level."""
    lines = []
    for text in texts:
        feature, level = parse_level(text)
        _check_known(feature, level)
        needs = _NEEDS.get((feature, level), ())
        lines.append(
            f"{_named(feature, level)} requires:" if needs else f"{_named(feature, level)} has no dependencies."
        )
        lines += [f"    {_named(*each)}" for each in needs]
    return lines


def _check_known(feature: str, level: int) -> None:
    if feature == METADATA_VERSION:
        if not 0 <= level - _FIRST_LEVEL < len(_RELEASES):
            raise UnknownLevel(f"Unknown metadata.version {level}")
    elif feature not in _LAST_LEVEL:
        raise UnknownLevel(f"Unknown feature: {feature}")
    elif not 0 <= level <= _LAST_LEVEL[feature]:
        raise UnknownLevel(f"No feature:{feature} with feature level {level}")


def _named(feature: str, level: int) -> str:
    return f"{feature}={level}" + (f" ({level_text(feature, level)})" if feature == METADATA_VERSION else "")


# --- subcommands that need no cluster ---------------------------------------------------------------------------------


def add_local_commands(commands: "argparse._SubParsersAction[Argparse4jOptions]", *short: str) -> None:
    """`short` are the short forms of the options, which kafka-storage has but kafka-features does not."""
    mapping = commands.add_parser(
        "version-mapping",
        help="show the levels of all features in a release",
        description="Show the levels that all features have in a release of Kafka.",
    )
    mapping.add_argument(
        "--release-version",
        *short[:1],
        default=LATEST_PRODUCTION,
        metavar="RELEASE",
        help=f"the release (default: {LATEST_PRODUCTION})",
    )
    dependencies = commands.add_parser(
        "feature-dependencies",
        help="show what a level needs of other features",
        description="Show which levels of other features a level of a feature needs.",
    )
    dependencies.add_argument(
        "--feature",
        *short[1:],
        action="append",
        required=True,
        metavar="FEATURE=LEVEL",
        help="a feature and its level; may be repeated",
    )


def run_local_command(options: argparse.Namespace) -> bool:
    """Run one of these commands. Returns False if the command is another one."""
    match options.command:
        case "version-mapping":
            print("\n".join(mapping_lines(options.release_version)))
        case "feature-dependencies":
            print("\n".join(dependency_lines(options.feature)))
        case _:
            return False
    return True
