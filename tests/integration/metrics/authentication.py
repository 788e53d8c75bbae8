"""Scenarios of handshakes and log-ins."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from tests.integration.attacks.target import Target, trusting
from tests.integration.metrics.stage import Stage
from tests.peers.observed import ObservedBroker

KINDS = (
    "successful_authentication",
    "failed_authentication",
    "successful_reauthentication",
    "failed_reauthentication",
)
SESSION_S = 3.0  # on a busy machine three log-ins take a part of it
AGAIN_AFTER_S = 1.1  # no re-authentication is taken within the first second


def secured_broker(folder: Path) -> ObservedBroker:
    broker = Target(folder)
    broker.overrides["listener.name.short.connections.max.reauth.ms"] = str(int(SESSION_S * 1000))
    return broker


@contextlib.contextmanager
def log_ins_of_every_kind(stage: Stage) -> Iterator[None]:
    """Sessions that go on, that fail to, and that end; and a client over TLS."""
    assert isinstance(stage.broker, Target)
    broker = stage.broker
    with (
        broker.user("alice", "SHORT") as goes_on,
        broker.user("alice", "SHORT") as fails,
        broker.user("alice", "SHORT") as forgets,
        broker.guest("TLS") as encrypted,
    ):
        encrypted.encrypt(trusting(broker.authority))
        encrypted.metadata()
        with broker.guest("SASL") as stranger:
            stranger.handshake("PLAIN")
            stranger.is_refused(b"\0alice\0wrong")
        time.sleep(AGAIN_AFTER_S)
        for client in (goes_on, fails):
            client.handshake("PLAIN")
        goes_on.challenge(b"\0alice\0alice-secret")
        fails.is_refused(b"\0alice\0wrong")
        time.sleep(SESSION_S - AGAIN_AFTER_S + 0.1)
        with contextlib.suppress(ConnectionError):
            forgets.metadata()
        yield
