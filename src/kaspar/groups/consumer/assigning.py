"""Applies the assignment of a large consumer group after it has been computed in a thread."""

from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.target import AssignmentComputed, as_of_now, target_records


def assignment_computed(group: ConsumerMembership, event: AssignmentComputed, now: Now) -> Decision:
    """Make the assignment the target. If the group's epoch has moved on, the next heartbeat computes another one."""
    if event.epoch <= group.state.assignment_epoch:
        return Decision()
    return Decision(target_records(group.state, as_of_now(group.state, event), now.wall_ms))
