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
_SHOW_BROKER = ("describe-configs-this-broker", "describe-configs-this-broker-with-synonyms-and-documentation")
_OF_BROKER = "step 1: DescribeConfigs / results / 4 1 / configs"

_ANNOUNCED = [
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
]

_SETTINGS = [
    Known(
        f"`{name}` has no value.",
        "There is no KRaft controller.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / {name} / *"],
    )
    for name in ("process.roles", "controller.listener.names", "controller.quorum.voters")
]
_SETTINGS.append(
    Known(
        "There are settings that begin with `kaspar.`.",
        "They are for what Apache Kafka does not have, or sets by other files.",
        _SHOW_BROKER,
        [f"{_OF_BROKER} / kaspar.*"],
    )
)

_BETTER_ANSWERS = [
    Known(
        "A Produce request with null records is answered with INVALID_RECORD; Kafka does not answer it at all.",
        "A client that waits for an answer which never comes is not helped.",
        ["produce-null-records"],
        ["step 1: Produce"],
    ),
    Known(
        "An AlterConfigs request that names a resource twice is answered with INVALID_REQUEST; Kafka does not answer.",
        "A client that waits for an answer which never comes is not helped.",
        ["alter-configs-the-same-twice"],
        ["step 1: AlterConfigs"],
    ),
    Known(
        "A batch whose records' offset deltas have a gap or do not begin at zero is refused with INVALID_RECORD; "
        "Kafka stores it where it is not compressed.",
        "Its records would be read with offsets that belong to others.",
        ["produce-offset-deltas-with-a-gap", "produce-offset-deltas-that-begin-at-one"],
        ["step 1: Produce / *", "step 2: Fetch / *"],
    ),
    Known(
        "The same in a compressed batch is INVALID_RECORD; Kafka answers UNKNOWN_SERVER_ERROR.",
        "The record is at fault, not the server.",
        ["produce-offset-deltas-with-a-gap-in-gzip"],
        ["step 1: Produce / * / error_code"],
    ),
    Known(
        "A topic that Metadata makes is in the same answer; Kafka first answers UNKNOWN_TOPIC_OR_PARTITION.",
        "The client need not ask again.",
        ["metadata-a-topic-is-made-by-asking-for-it"],
        ["step 1: Metadata / topics / made / *"],
    ),
    Known(
        "Metadata by neither id nor name is INVALID_TOPIC_EXCEPTION for that topic; "
        "Kafka answers UNKNOWN_SERVER_ERROR and nothing else.",
        "The request is at fault, not the server, and its other topics are answered.",
        ["metadata-by-neither-id-nor-name"],
        ["step 1: Metadata / *"],
        versions=(12, 13),
    ),
    Known(
        "DescribeTopicPartitions of an empty name is INVALID_TOPIC_EXCEPTION; Kafka answers UNKNOWN_SERVER_ERROR.",
        "The request is at fault, not the server.",
        ["describe-topic-partitions-an-empty-name"],
        ["step 1: DescribeTopicPartitions / topics / * / error_code"],
    ),
    Known(
        "An operation that IncrementalAlterConfigs does not have is INVALID_REQUEST with a message; "
        "Kafka answers UNKNOWN_SERVER_ERROR.",
        "The request is at fault, not the server.",
        ["incremental-alter-configs-an-operation-that-does-not-exist"],
        ["step 1: IncrementalAlterConfigs / responses / 2 t / *"],
    ),
    Known(
        "A body with a length below minus one, or with text that is not UTF-8, closes the connection; "
        "Kafka takes the one for null and puts a replacement character into the other.",
        "Bytes that are not a request are not guessed at.",
        [
            "api-versions-connection-sends-an-array-length-below-minus-one",
            "api-versions-connection-sends-a-text-that-is-no-text",
        ],
        ["step 1: Metadata by hand"],
    ),
]

KNOWN: Sequence[Known] = (*_ANNOUNCED, *_SETTINGS, *_BETTER_ANSWERS)


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
