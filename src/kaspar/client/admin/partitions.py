"""Adds partitions to topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, common_code, refusal
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    total: int
    """The new number of partitions of the topic."""
    assignments: Sequence[Sequence[int]] | None = None
    """The replicas of each new partition; None lets the controller choose them."""


def create_partitions(admin: Admin, topics: Mapping[str, NewPartitions]) -> dict[str, Refused | None]:
    """Add partitions. Returns for each topic why it did not get them, or None."""
    if not topics:
        return {}
    request = CreatePartitionsRequest(
        topics=tuple(_to_wire(name, new) for name, new in topics.items()),
        timeout_ms=admin.timeout_ms,
        validate_only=False,
    )
    response = admin.ask_controller(
        "createPartitions",
        request,
        CreatePartitionsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.results),
    )
    return {each.name: refusal(each.error_code, each.error_message) for each in response.results}


def _to_wire(name: str, new: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if new.assignments is not None:
        assignments = tuple(CreatePartitionsAssignment(broker_ids=tuple(replicas)) for replicas in new.assignments)
    return CreatePartitionsTopic(name=name, count=new.total, assignments=assignments)
