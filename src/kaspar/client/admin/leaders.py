"""Calls about partitions: each leader gets a request for its partitions, until every partition has a final result."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import RETRY_BACKOFF_S, Admin, no_node
from kaspar.client.offsets import GONE

_Wanted = TypeVar("_Wanted")
_Result = TypeVar("_Result")


def ask_leaders(
    admin: Admin,
    call: str,
    wanted: Mapping[TopicPartition, _Wanted],
    ask: Callable[[int, Mapping[TopicPartition, _Wanted]], Mapping[TopicPartition, _Result | Refused]],
) -> dict[TopicPartition, _Result | Refused]:
    """Call `ask` with the partitions of each leader, and return all results. `call` is the name of the call in Kafka's
    Admin. Partitions that do not exist are refused at once; transient errors are retried until the admin's timeout."""
    deadline = time.monotonic() + admin.api_timeout_s
    results: dict[TopicPartition, _Result | Refused] = {}
    pending = dict(wanted)
    while pending:
        for where, result in _attempt(admin, call, pending, ask).items():
            results[where] = result
            if not (isinstance(result, Refused) and result.code in RETRIABLE - GONE):
                del pending[where]
        if time.monotonic() + RETRY_BACKOFF_S > deadline:
            break
        if pending:
            time.sleep(RETRY_BACKOFF_S)
    return {where: results[where] for where in wanted}


def _attempt(
    admin: Admin,
    call: str,
    pending: Mapping[TopicPartition, _Wanted],
    ask: Callable[[int, Mapping[TopicPartition, _Wanted]], Mapping[TopicPartition, _Result | Refused]],
) -> dict[TopicPartition, _Result | Refused]:
    results: dict[TopicPartition, _Result | Refused] = {}
    of_leader: dict[int, dict[TopicPartition, _Wanted]] = {}
    try:
        admin.client.refresh_metadata(sorted({where.topic for where in pending}))
        for where, value in pending.items():
            try:
                of_leader.setdefault(admin.client.leader_of(where), {})[where] = value
            except Refused as refused:
                results[where] = _without_leader(where, refused.code)
    except OSError as error:
        admin.report_unreachable(error)
        return dict.fromkeys(pending, no_node(call))
    for leader, together in of_leader.items():
        try:
            results.update(ask(leader, together))
        except OSError as error:
            admin.report_unreachable(error)
            results.update(dict.fromkeys(together, no_node(call)))
        except Refused:  # the leader has left the cluster
            results.update(dict.fromkeys(together, no_node(call)))
    return results


def _without_leader(where: TopicPartition, code: ErrorCode) -> Refused:
    if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Refused(code, f"Failed to fetch metadata for partition {where} due to topic authorization failure")
    return Refused(code, code.name)
