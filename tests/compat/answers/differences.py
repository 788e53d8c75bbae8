"""The differences from Apache Kafka that are known, each with its reason. docs/differences.md is written from here.

An entry names the scenarios and versions in which it shows. In each of them it must show: an entry that no longer
differs fails the test, so no excuse outlives its reason.
"""

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tests.compat.answers.compare import Difference
from tests.compat.answers.later import APIS_OF_LATER
from tests.compat.answers.scenario import Scenario


@dataclass(frozen=True)
class Known:
    what: str  # a sentence for people: what differs
    reason: str  # a sentence: why
    scenarios: Sequence[str]  # slugs
    paths: Sequence[str]  # patterns over the path of a difference; each must match one
    versions: Collection[int] | None = None  # None: every version of the scenario

    def concerns(self, scenario: Scenario, version: int) -> bool:
        return scenario.slug in self.scenarios and (self.versions is None or version in self.versions)


_SHOW_APIS = ("api-versions-an-ordinary-client", "api-versions-twice-on-a-connection")

KNOWN: Sequence[Known] = (
    *[
        Known(
            f"{api} is not announced.", f"{reason[0].upper()}{reason[1:]}.", _SHOW_APIS, [f"step * / api_keys / {api}"]
        )
        for api, reason in APIS_OF_LATER.items()
    ],
    Known(
        "No features are announced.",
        "The features of Apache Kafka are switches of its own metadata log and of group protocols that come later.",
        _SHOW_APIS,
        [f"step * / {field}" for field in ("supported_features", "finalized_features_epoch", "finalized_features")],
        versions=(3, 4),
    ),
)


@dataclass(frozen=True)
class Judgement:
    unexpected: list[Difference]
    stale: list[str]


def judge(found: Iterable[Difference], scenario: Scenario, version: int, known: Sequence[Known]) -> Judgement:
    """Which differences no entry explains, and which entries explain nothing."""
    patterns = [(entry, path) for entry in known if entry.concerns(scenario, version) for path in entry.paths]
    unexpected = []
    used: set[int] = set()
    for difference in found:
        matching = [n for n, (_, path) in enumerate(patterns) if fnmatch.fnmatchcase(difference.path, path)]
        used.update(matching)
        if not matching:
            unexpected.append(difference)
    stale = [f"{entry.what} ({path})" for n, (entry, path) in enumerate(patterns) if n not in used]
    return Judgement(unexpected, stale)
