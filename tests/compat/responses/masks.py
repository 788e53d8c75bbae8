"""What legitimately varies between two brokers is replaced by a name, so that the rest can be compared exactly.

Ids that a broker hands out (topic ids, producer ids, member ids, session ids, the cluster id, ports, log directories)
are renamed in the order in which they first appear in a transcript: two brokers agree when they use the same id in the
same places.
Texts for people (error messages, documentation) are compared only in whether there is one. A point in time near the
present becomes `<now>`. Lists of things with an identity become dicts, with the order as a field of its own.
"""

import fnmatch
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kio.schema.index import api_key_map

from tests.compat.responses.api import title
from tests.compat.responses.messages import Plain
from tests.compat.responses.placeholders import Context
from tests.compat.responses.play import Transcript
from tests.compat.responses.scenario import Scenario

Tree = Any
NEAR_NOW_MS = 3_600_000
ORDER = "(order)"
_TOPIC_ID = "topic id"
_TOPIC_NAME = re.compile(r"[a-z0-9-]+\.(v_?\d+|all)\.")  # of a scenario's topic

# The order of these lists is that of a hash table in Apache Kafka, or of the ids that it drew: it says nothing.
UNORDERED = (
    "ApiVersions.api_keys",
    "ApiVersions.supported_features",
    "ApiVersions.finalized_features",
    "Metadata.topics",
    "CreateTopics.topics.*.configs",
    "DescribeConfigs.results.*.configs",
    "AlterReplicaLogDirs.results",
    "AlterReplicaLogDirs.results.*.partitions",
    "DescribeLogDirs.results.*.topics",
    "DescribeLogDirs.results.*.topics.*.partitions",
    "DescribeProducers.topics.*.partitions.*.active_producers",
    "ListGroups.groups",
    "DeleteGroups.results",
    "AddPartitionsToTxn.*results_by_partition",
    "ListTransactions.transaction_states",
    "DescribeUserScramCredentials.results",
    "DescribeUserScramCredentials.results.*.credential_infos",
    "AlterUserScramCredentials.results",
)

# Settings whose values name this broker's own ports, folders and processes.
OWN_SETTINGS = frozenset(
    {"listeners", "advertised.listeners", "log.dirs", "log.dir", "controller.quorum.voters", "metadata.log.dir"}
)

# Their ids are in no scenario's hands, and may come in any order.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})

# The fields that identify the items of a list; the first that an item has is its identity.
_IDENTITIES: Sequence[tuple[str, ...]] = (
    ("api_key",),
    ("base_offset", "size"),
    ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
    ("resource_type", "resource_name", "pattern_type"),
    ("principal", "host", "operation", "permission_type"),
    ("resource_type", "resource_name"),
    ("resource_name",),
    ("group_id",),
    ("transactional_id",),
    ("member_id",),
    ("key",),
    ("feature",),
    ("batch_index",),
    ("partition_index",),
    ("partition",),
    ("index",),
    ("user",),
    ("mechanism",),
    ("node_id",),
    ("broker_id",),
    ("log_dir",),
    ("producer_id",),
    ("name",),
    ("topic",),
    ("topic_name",),
    ("topic_id",),
)


_NAMES = ("topic", "name", "resource_name", "group_id", "transactional_id")


class _Names:
    """Names for values: a topic's id by its topic, the others numbered by first appearance."""

    def __init__(self, topic_ids: Mapping[str, uuid.UUID]) -> None:
        self._known: dict[tuple[str, object], str] = {
            (_TOPIC_ID, value): f"<{_TOPIC_ID} of {short}>" for short, value in topic_ids.items()
        }

    def of(self, kind: str, value: object) -> str:
        same_kind = sum(known_kind == kind for known_kind, _ in self._known)
        return self._known.setdefault((kind, value), f"<{kind} {same_kind + 1}>")


class _Masker:
    def __init__(self, scenario: Scenario, context: Context) -> None:
        self._names = _Names(context.topic_ids)
        self._prefix = context.prefix
        self._masks = scenario.masks
        self._unordered = (*UNORDERED, *scenario.unordered)
        self._now_ms = time.time() * 1000

    def mask(self, tree: Plain, path: str) -> Tree:
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in self._masks):
            return "<varies>"
        match tree:
            case dict():
                return self._mask_fields(tree, path)
            case list() if tree and all(isinstance(item, dict) and _identity(item) for item in tree):
                return self._mask_items(tree, path)
            case list():
                return [self.mask(item, f"{path}.*") for item in tree]
        return self._mask_value(tree, path)

    def _mask_fields(self, tree: Mapping[str, Plain], path: str) -> Tree:
        if tree.get("name") in INTERNAL_TOPICS and "topic_id" in tree:
            tree = {**tree, "topic_id": "<its own>"}
        if ".configs.*" in path and tree.get("name") in OWN_SETTINGS:
            tree = {**tree, "value": "<its own>", "synonyms": f"{len(tree.get('synonyms', ()))} of them"}
        return {name: self.mask(value, f"{path}.{name}") for name, value in tree.items()}

    def _mask_items(self, items: Sequence[Mapping[str, Plain]], path: str) -> Tree:
        result: dict[str, Tree] = {}
        for item in items:
            if self._is_foreign(item):
                continue
            masked = self._mask_fields(item, f"{path}.*")
            key = label = _label(masked)
            repetition = 1
            while key in result:
                repetition += 1
                key = f"{label} again ({repetition})"
            result[key] = masked
        if not result:
            return []
        if not any(fnmatch.fnmatchcase(path, pattern) for pattern in self._unordered):
            result[ORDER] = list(result)
        return result

    def _is_foreign(self, item: Mapping[str, Plain]) -> bool:
        """Whether it is about what another scenario has made: that shows where a request asks for everything."""
        name = next((item[name] for name in _NAMES if item.get(name)), None)
        return isinstance(name, str) and bool(_TOPIC_NAME.match(name)) and not name.startswith(f"{self._prefix}.")

    def _mask_value(self, value: Plain, path: str) -> Tree:
        field = path.rpartition(".")[2]
        if isinstance(value, uuid.UUID):
            return self._names.of(_TOPIC_ID, value)
        if rule := _FIELD_RULES.get(field):
            return rule(self, value)
        return value.replace(f"{self._prefix}.", "") if isinstance(value, str) else value

    def renamed(self, kind: str, *, unless: object) -> Callable[[Plain], Tree]:
        return lambda value: value if value == unless else self._names.of(kind, value)

    def near_now(self, value: Plain) -> Tree:
        return "<now>" if isinstance(value, int) and abs(value - self._now_ms) < NEAR_NOW_MS else value


def _text(_: _Masker, value: Plain) -> Tree:
    return value if value is None else "<a text>"


def _amount(_: _Masker, value: Plain) -> Tree:
    return "<an amount>" if isinstance(value, int) and value > 0 else value


def _rename(kind: str, *, unless: object) -> Callable[[_Masker, Plain], Tree]:
    return lambda masker, value: masker.renamed(kind, unless=unless)(value)


_FIELD_RULES: Mapping[str, Callable[[_Masker, Plain], Tree]] = {
    "error_message": _text,
    "batch_index_error_message": _text,
    "documentation": _text,
    "total_bytes": _amount,
    "usable_bytes": _amount,
    "finalized_features_epoch": _rename("epoch", unless=-1),
    "cluster_id": _rename("cluster id", unless=None),
    "port": _rename("port", unless=-1),
    "log_dir": _rename("log dir", unless=None),
    "session_id": _rename("session", unless=0),
    "producer_id": _rename("producer id", unless=-1),
    "member_id": _rename("member", unless=""),
    "leader": _rename("member", unless=""),
    "log_append_time": _Masker.near_now,
    "timestamp": _Masker.near_now,
    "last_timestamp": _Masker.near_now,
    "base_timestamp": _Masker.near_now,
    "max_timestamp": _Masker.near_now,
    "transaction_start_time": _Masker.near_now,
    "last_fetch_timestamp": _Masker.near_now,
    "last_caught_up_timestamp": _Masker.near_now,
}


def _identity(item: Mapping[str, Plain]) -> tuple[str, ...] | None:
    return next((names for names in _IDENTITIES if all(item.get(name) is not None for name in names)), None)


def _label(item: Mapping[str, Tree]) -> str:
    identity = _identity(item)
    assert identity is not None
    if identity == ("api_key",):
        return title(api_key_map.get(item["api_key"], f"api_{item['api_key']}"))
    return " ".join(str(item[name]) for name in identity)


def masked(transcript: Transcript, scenario: Scenario) -> dict[str, Tree]:
    """The transcript with what varies replaced: the step's name, then a tree."""
    masker = _Masker(scenario, transcript.context)
    result: dict[str, Tree] = {}
    for step, said in transcript.entries:
        api_title = step.partition(": ")[2].removesuffix(" by hand")
        result[step] = masker.mask(said, api_title)
    return result
