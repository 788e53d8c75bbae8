"""When the patterns of a consumer group are resolved, and what follows.

All patterns of a group are resolved together, in a thread, at most every ten seconds: when one has not been resolved
yet, when topics have been created since, and every ten minutes in any case. Members notice at their next heartbeat.
"""

from collections.abc import Callable, Collection
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.membership import NEVER, ConsumerMembership
from kaspar.groups.consumer.patterns import PatternsResolved, ResolvePatterns
from kaspar.groups.consumer.records import epoch_record, pattern_record

LEAST_INTERVAL_MS: Final = 10_000
REFRESH_INTERVAL_MS: Final = 10 * 60 * 1000


def are_due(group: ConsumerMembership, patterns: Collection[str], now: Now) -> bool:
    """Whether these patterns, which the group has or will have, are to be resolved now."""
    state, context = group.state, group.context
    if not patterns or group.group_id in context.resolving:
        return False
    resolved = next(iter(state.resolved.values()), None)
    if resolved is None:
        return True
    age_ms = now.wall_ms - resolved.timestamp_ms
    if 0 <= age_ms <= LEAST_INTERVAL_MS:
        return False
    return (
        state.resolved.keys() != set(patterns)
        or group.patterns_resolved_at < context.topics_version
        or not 0 <= age_ms <= REFRESH_INTERVAL_MS
    )


def maybe_resolve(
    group: ConsumerMembership,
    patterns: frozenset[str],
    describes: Callable[[str], bool] | None,
    now: Now,
    decision: Decision,
) -> None:
    """Start to resolve the patterns if that is due. As in Kafka, they match only topics that the member whose request
    is handled may describe.
    """
    if are_due(group, patterns, now):
        context = group.context
        context.resolving.add(group.group_id)
        version = context.topics_version
        decision.add_action(ResolvePatterns(group.group_id, patterns, context.topics, version, describes))


def patterns_resolved(group: ConsumerMembership, event: PatternsResolved, now: Now) -> Decision:
    """Store the resolved patterns, except those that no member has any more. If the group now reads other topics, or
    they have changed, its epoch is bumped.
    """

    def refused(code: ErrorCode, later: Now) -> Decision:
        """Make the next heartbeat resolve the patterns again."""
        group.patterns_resolved_at = NEVER
        return Decision()

    decision = Decision(if_refused=refused)
    group.patterns_resolved_at = event.version
    state = group.state
    resolved = {pattern: topics for pattern, topics in event.topics.items() if pattern in state.pattern_subscribers}
    changed = False
    topics_read = set(state.subscribers)
    for pattern, topics in resolved.items():
        before = state.resolved.get(pattern)
        changed |= topics != (before.topics if before is not None else frozenset())
        topics_read |= topics
        decision.add_record(pattern_record(group.group_id, pattern, topics, event.version, now.wall_ms))
    for pattern, known in state.resolved.items():
        if pattern not in resolved:
            topics_read |= known.topics
    metadata_hash = group.context.metadata_hash(topics_read)
    if changed or metadata_hash != state.metadata_hash:
        epoch = state.group_epoch + 1
        decision.add_record(epoch_record(group.group_id, epoch, metadata_hash))
        group.looked_at_topics(epoch)
    return decision
