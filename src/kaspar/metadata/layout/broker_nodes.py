"""Brokers: their registrations, incarnations and epochs."""

from collections.abc import Mapping

from kaspar.base.ids import BrokerId, uuid_from_text, uuid_to_text
from kaspar.metadata.image import AdvertisedEndpoint, BrokerRegistration
from kaspar.metadata.layout.json_values import decode, encode
from kaspar.metadata.layout.store_paths import BROKER_EPOCHS, BROKER_IDS, BROKER_INCARNATIONS
from kaspar.metadata.store import Delete, Node, Operation, Put


def broker_path(broker_id: BrokerId, incarnation: int) -> str:
    """The path of a registration. It contains the incarnation, so that fencing a broker never removes the registration
    of its next start.
    """
    return f"{BROKER_IDS}/{broker_id}-{incarnation}"


def registered_as(node_name: str) -> tuple[BrokerId, int]:
    """The broker and its incarnation, from the name of its node."""
    broker, _, incarnation = node_name.partition("-")
    return BrokerId(int(broker)), int(incarnation)


def incarnations_path(broker_id: BrokerId) -> str:
    return f"{BROKER_INCARNATIONS}/{broker_id}"


def last_crash(counter: Node) -> int:
    """The incarnation of a broker's last start that was not clean, from the node that counts its incarnations. Earlier
    releases did not store it; then the last start is assumed.
    """
    return int(counter.value) if counter.value else counter.version


def encode_registration(registration: BrokerRegistration) -> bytes:
    """Encode a registration without the incarnation, which is part of the node's name, and without the epoch, which is
    the number of the transaction that creates the node.
    """
    return encode(
        {
            "endpoints": [
                [endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol]
                for endpoint in registration.endpoints
            ],
            "rack": registration.rack,
            "clean_start": registration.clean_start,
            "last_crash": registration.last_crash,
            "log_dirs": [uuid_to_text(directory) for directory in registration.log_dirs],
        }
    )


def decode_registration(broker_id: BrokerId, incarnation: int, epoch: int, value: bytes) -> BrokerRegistration:
    fields = decode(value)
    endpoints = tuple(AdvertisedEndpoint(*endpoint) for endpoint in fields["endpoints"])
    log_dirs = tuple(uuid_from_text(directory) for directory in fields["log_dirs"])
    clean_start, last_crash = fields["clean_start"], fields.get("last_crash", incarnation)
    return BrokerRegistration(
        broker_id, epoch, endpoints, fields["rack"], clean_start, log_dirs, incarnation, last_crash
    )


def registration_change(registration: BrokerRegistration) -> Operation:
    return Put(broker_path(registration.broker_id, registration.incarnation), encode_registration(registration))


def fencing(registration: BrokerRegistration) -> Operation:
    """The operation that removes this registration, but not one of a later incarnation of the broker."""
    return Delete(broker_path(registration.broker_id, registration.incarnation))


def epochs_change(epochs: Mapping[BrokerId, int], incarnations: Mapping[BrokerId, int]) -> list[Operation]:
    value = {
        str(broker): [epoch, incarnations[broker]] if broker in incarnations else epoch
        for broker, epoch in epochs.items()
    }
    return [Put(BROKER_EPOCHS, encode(value))]


def decode_epochs(value: bytes) -> tuple[dict[BrokerId, int], dict[BrokerId, int]]:
    """The last known epoch and incarnation of each broker. Earlier releases stored only the epoch."""
    epochs: dict[BrokerId, int] = {}
    incarnations: dict[BrokerId, int] = {}
    for name, known in decode(value).items():
        broker = BrokerId(int(name))
        if isinstance(known, int):
            epochs[broker] = known
        else:
            epochs[broker], incarnations[broker] = known
    return epochs, incarnations
