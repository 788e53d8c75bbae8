"""What follows when the assignment of a large consumer group has been computed in a thread."""

from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.target import AssignmentComputed, as_of_now, target_records


def assignment_computed(group: ConsumerMembership, event: AssignmentComputed, now: Now) -> Decision:
    """It becomes the target. If the group's epoch has moved on, the next heartbeat has that one computed."""
    if event.epoch <= group.state.assignment_epoch:
        return Decision()
    return Decision(target_records(group.state, as_of_now(group.state, event), now.wall_ms))
