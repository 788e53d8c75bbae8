"""Moves replicas between the log directories of their brokers, and describes the state of such moves."""

import time
from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.log_dirs import Replica, ReplicaLogDirs, alter_replica_log_dirs
from kaspar.client.admin.session import Admin
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.reassign_partitions.plan import plural

RETRY_S: Final = 0.1


class TimedOut(CommandFailed):
    pass


def start_moves(admin: Admin, targets: Mapping[Replica, str], timeout_ms: int) -> None:
    """Send requests until each broker has started its moves. A replica that is still to be created does not exist yet,
    and cannot be moved until it does."""
    deadline = time.monotonic() + timeout_ms / 1000
    pending = dict(targets)
    while True:
        for replica in sorted(_started(admin, pending)):
            path, where = pending.pop(replica), replica.partition
            print(
                f"Successfully started moving log directory to {path} for replica {where} "
                f"with broker {replica.broker_id} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline:
            raise TimedOut(
                f"Timed out before log directory move{plural(len(pending))} could be started for: "
                f"{','.join(map(str, sorted(pending)))}"
            )
        time.sleep(RETRY_S)


def _started(admin: Admin, targets: Mapping[Replica, str]) -> list[Replica]:
    started = []
    for replica, code in alter_replica_log_dirs(admin, targets).items():
        if code is ErrorCode.NONE:
            started.append(replica)
        elif code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            raise CommandFailed(f"Failed to alter dir for {replica}: {exception_text(Refused(code, code.name))}")
    return started


def is_moving(found: ReplicaLogDirs) -> bool:
    return found.current is not None and found.future is not None


def describe_move(replica: Replica, target: str, found: ReplicaLogDirs) -> str:
    """The state of the move of a replica to a directory."""
    where, broker_id = replica.partition, replica.broker_id
    if found.current is None:
        return (
            f"Partition {where} is not found in any live log dir on broker {broker_id}. "
            "There is likely an offline log directory on the broker."
        )
    if found.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    if found.future is not None:
        return f"Partition {where} on broker {broker_id} is being moved to log dir {found.future} instead of {target}."
    if found.current == target:
        return f"Reassignment of replica {replica} completed successfully."
    return f"Partition {where} on broker {broker_id} is not being moved from log dir {found.current} to {target}."
