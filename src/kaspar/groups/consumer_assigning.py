"""What follows when the assignment of a large consumer group was computed in a thread."""

from kaspar.coordination import Decision, Now
from kaspar.groups.consumer import ConsumerGroup
from kaspar.groups.group import Group
from kaspar.groups.surroundings import Surroundings
from kaspar.groups.target import AssignmentComputed, as_of_now, target_records


def assignment_computed(
    group: Group | None, event: AssignmentComputed, now: Now, surroundings: Surroundings
) -> Decision:
    """It is the target from now on. If the group's epoch has moved on, the next heartbeat has that one computed."""
    if surroundings.computing.get(event.group_id) == event.epoch:
        del surroundings.computing[event.group_id]
    if not isinstance(group, ConsumerGroup) or event.epoch <= group.state.assignment_epoch:
        return Decision()
    return Decision(records=target_records(group.state, as_of_now(group.state, event), now.wall_ms))
