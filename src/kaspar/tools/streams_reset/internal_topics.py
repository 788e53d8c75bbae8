"""The internal topics of an application, recognized by their names (StreamsResetter.matchesInternalTopicFormat).

`word-count-2-counts-changelog` may be a topic of `word-count` or of `word-count-2`. Kafka's tool deletes it for both.
Here it belongs to `word-count-2` if a group of that name exists, so that a reset of one version of a program does not
affect the state of another.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from kaspar.tools.command_line import CommandFailed

_SUFFIXES: Final = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_JOIN: Final = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic")


def inferred(application_id: str, existing: Iterable[str], own: Collection[str]) -> list[str]:
    """The internal topics of the application. `own` are input topics named by the user, which never count as
    internal.
    """
    return [
        topic
        for topic in existing
        if topic not in own and topic.startswith(f"{application_id}-") and _has_internal_name(topic)
    ]


def of_others(application_id: str, topics: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Those of these topics that belong to another application, because there is a group with a longer matching
    name.
    """
    others = tuple(f"{group}-" for group in groups if group.startswith(f"{application_id}-"))
    return [topic for topic in topics if topic.startswith(others)]


def chosen(specified: Sequence[str], found: Sequence[str]) -> Sequence[str]:
    """The topics to delete: the specified ones, which must be among those found, or all if none are specified."""
    if not {*specified} <= {*found}:
        raise CommandFailed(
            "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all "
            "internal topics. Do a dry run without the --internal-topics option to see the list of all internal topics "
            "that can be deleted."
        )
    return specified or found


def _has_internal_name(topic: str) -> bool:
    return topic.endswith(_SUFFIXES) or _FOREIGN_KEY_JOIN.fullmatch(topic) is not None
