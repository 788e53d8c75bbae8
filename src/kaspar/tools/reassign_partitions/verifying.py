"""--verify: reports the progress of a reassignment, and removes its throttles when everything is done."""

from collections.abc import Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.log_dirs import describe_replica_log_dirs
from kaspar.client.admin.reassignments import list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.tools.reassign_partitions.log_dir_moves import describe_move, is_moving
from kaspar.tools.reassign_partitions.plan import Assignment, Plan, parse_plan
from kaspar.tools.reassign_partitions.throttles import clear_throttles


def verify(admin: Admin, text: str, *, preserve_throttles: bool) -> None:
    plan = parse_plan(text)
    is_reassigning = _verify_partitions(admin, plan.assignment)
    is_moving_logs = _verify_log_dirs(admin, plan)
    if not is_reassigning and not is_moving_logs and not preserve_throttles:
        clear_throttles(admin, plan)


def _verify_partitions(admin: Admin, targets: Assignment) -> bool:
    """Print the status of the partitions. Returns whether any partition of the cluster is being reassigned."""
    current = list_reassignments(admin)
    topics = describe_topics(admin, {where.topic for where in targets if where not in current})
    lines = ["Status of partition reassignment:"]
    for where in sorted(targets):
        if where in current:
            lines.append(f"Reassignment of partition {where} is still in progress.")
        else:
            lines.append(describe_end(where, _replicas(where, topics[where.topic]), targets[where]))
    print("\n".join(lines))
    return bool(current)


def _replicas(where: TopicPartition, topic: TopicDescription | Refused) -> Sequence[int]:
    """The replicas of a partition; empty if it does not exist."""
    if isinstance(topic, Refused):
        if topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ()
        raise topic
    return next((each.replicas for each in topic.partitions if each.partition == where.partition), ())


def describe_end(where: TopicPartition, replicas: Sequence[int], targets: Sequence[int]) -> str:
    if tuple(replicas) == tuple(targets):
        return f"Reassignment of partition {where} is completed."
    return (
        f"There is no active reassignment of partition {where}, but replica set is "
        f"{','.join(map(str, replicas))} rather than {','.join(map(str, targets))}."
    )


def _verify_log_dirs(admin: Admin, plan: Plan) -> bool:
    """Print the status of the moves. Returns whether a replica of the plan is being moved between directories."""
    found = describe_replica_log_dirs(admin, plan.log_dirs)
    print("\n".join(describe_move(each, plan.log_dirs[each], found[each]) for each in sorted(plan.log_dirs)))
    return any(map(is_moving, found.values()))
