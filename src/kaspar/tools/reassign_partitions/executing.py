"""--execute: starts reassignments, throttled if requested, and moves between log directories."""

from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.reassignments import alter_reassignments, list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.reassign_partitions.log_dir_moves import start_moves
from kaspar.tools.reassign_partitions.plan import (
    Plan,
    check_executable,
    format_assignment,
    names,
    parse_plan,
    plural,
)
from kaspar.tools.reassign_partitions.throttles import proposed_moves, throttle_log_dirs, throttle_replication
from kaspar.tools.reassign_partitions.topics import log_dirs_of, replicas_of_partitions

NO_THROTTLE: Final = -1


class NotStarted(CommandFailed):
    """Printed without the prefix "Error:"."""


def execute(
    admin: Admin,
    text: str,
    *,
    additional: bool,
    replication_throttle: int,
    log_dir_throttle: int,
    timeout_ms: int,
    allow_replication_factor_change: bool,
) -> None:
    """The throttles are in bytes per second. NO_THROTTLE leaves them unchanged."""
    plan = parse_plan(text)
    check_executable(plan)
    current = list_reassignments(admin)
    if current and not additional:
        raise NotStarted(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
            "and create a new partition assignment in addition to the existing one. The --additional flag can also "
            "be used to change the throttle by resubmitting the current reassignment."
        )
    _check_brokers(admin, plan)
    replicas = replicas_of_partitions(admin, plan.assignment)
    print(
        f"Current partition replica assignment\n\n{format_assignment(replicas, log_dirs_of(admin, replicas))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if replication_throttle >= 0 or log_dir_throttle >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
            "is removed."
        )
    if replication_throttle >= 0:
        throttle_replication(admin, proposed_moves(current, plan.assignment, replicas), replication_throttle)
    if log_dir_throttle >= 0:
        throttle_log_dirs(admin, {replica.broker_id for replica in plan.log_dirs}, log_dir_throttle)
    _reassign(admin, plan.assignment, allow_replication_factor_change=allow_replication_factor_change)
    if plan.log_dirs:
        start_moves(admin, plan.log_dirs, timeout_ms)


def _check_brokers(admin: Admin, plan: Plan) -> None:
    unknown = plan.broker_ids - {each.node_id for each in describe_cluster(admin).nodes}
    if unknown:
        raise CommandFailed(f"Unknown broker id {min(unknown)}")


def _reassign(
    admin: Admin, targets: dict[TopicPartition, tuple[int, ...]], *, allow_replication_factor_change: bool
) -> None:
    refused = alter_reassignments(admin, targets, allow_replication_factor_change=allow_replication_factor_change)
    if refused:
        lines = [f"{where}: {message_of(refused[where])}" for where in sorted(refused)]
        raise NotStarted("\n".join(["Error reassigning partition(s):", *lines]))
    print(f"Successfully started partition reassignment{plural(len(targets))} for {names(targets)}")
