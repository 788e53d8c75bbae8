"""The controller's fence and its seat."""

from typing import TypeAlias

from kaspar.base.ids import BrokerId
from kaspar.metadata.layout.json_values import decode, encode

Address: TypeAlias = tuple[str, int]


def encode_fence(controller_id: BrokerId, epoch: int, transaction: int, *, passed_on_to: int | None = None) -> bytes:
    """`passed_on_to`: the broker that this controller has left its seat to, or -1 for any other broker."""
    fields = {"controller": controller_id, "epoch": epoch, "transaction": transaction}
    return encode(fields if passed_on_to is None else {**fields, "passed on to": passed_on_to})


def may_claim(fence: bytes, broker_id: BrokerId) -> bool:
    """Whether this broker may claim a vacant seat: the last controller did not leave it to others."""
    fields = decode(fence)
    successor = fields.get("passed on to")
    return successor is None or (fields["controller"] != broker_id if successor < 0 else successor == broker_id)


def encode_seat(controller_id: BrokerId, address: Address | None) -> bytes:
    return encode({"controller": controller_id, "address": address})


def decode_seat(value: bytes) -> tuple[BrokerId, Address | None]:
    """The controller's id, and the address at which other brokers reach it."""
    fields = decode(value)
    address = fields["address"]
    return BrokerId(fields["controller"]), None if address is None else (address[0], address[1])
