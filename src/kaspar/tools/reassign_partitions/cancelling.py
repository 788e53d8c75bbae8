"""--cancel: ends reassignments in progress, so that the partitions keep their previous replicas. Also --list."""

from kaspar.client.admin.log_dirs import describe_replica_log_dirs
from kaspar.client.admin.reassignments import Reassignment, alter_reassignments, list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.reassign_partitions.executing import NotStarted
from kaspar.tools.reassign_partitions.log_dir_moves import is_moving, start_moves
from kaspar.tools.reassign_partitions.plan import Plan, names, parse_plan, plural
from kaspar.tools.reassign_partitions.throttles import clear_throttles


def cancel(admin: Admin, text: str, *, preserve_throttles: bool, timeout_ms: int) -> None:
    plan = parse_plan(text)
    _cancel_reassignments(admin, plan)
    _cancel_log_dir_moves(admin, plan, timeout_ms)
    if not preserve_throttles:
        clear_throttles(admin, plan)


def _cancel_reassignments(admin: Admin, plan: Plan) -> None:
    active = list(list_reassignments(admin, plan.assignment))
    if not active:
        print("None of the specified partition reassignments are active.")
        return
    refused = alter_reassignments(admin, dict.fromkeys(active))
    if refused:
        lines = [f"{where}: {message_of(refused[where])}" for where in sorted(refused)]
        raise NotStarted("\n".join([f"Error cancelling partition reassignment{plural(len(refused))} for:", *lines]))
    print(f"Successfully cancelled partition reassignment{plural(len(active))} for: {names(active)}")


def _cancel_log_dir_moves(admin: Admin, plan: Plan, timeout_ms: int) -> None:
    """Cancel moves by starting a move back to the current directory."""
    found = describe_replica_log_dirs(admin, plan.log_dirs)
    back = {replica: each.current for replica, each in found.items() if is_moving(each) and each.current is not None}
    if back:
        start_moves(admin, back, timeout_ms)
    else:
        print("None of the specified partition moves are active.", end="")  # no line end, as in Kafka


def list_active(admin: Admin) -> None:
    active = list_reassignments(admin)
    if not active:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for where in sorted(active):
        print(f"{where}: {_described(active[where])}")


def _described(reassignment: Reassignment) -> str:
    parts = [f"replicas: {','.join(map(str, reassignment.replicas))}."]
    if reassignment.adding_replicas:
        parts.append(f"adding: {','.join(map(str, reassignment.adding_replicas))}.")
    if reassignment.removing_replicas:
        parts.append(f"removing: {','.join(map(str, reassignment.removing_replicas))}.")
    return " ".join(parts)
