"""Whether a member of a cluster is ready, and a broker's view of its cluster. Each check is a network request with a
timeout.
"""

import http.client
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.plan import HOST, ClusterPlan
from kaspar.web.catalogue import SERVICES

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

ASK_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster in the metadata of one broker."""

    broker_ids: frozenset[int]
    controller_id: int | None

    def is_complete(self, plan: ClusterPlan) -> bool:
        """Whether it contains all brokers, and one of them is the controller."""
        ids = {broker.id for broker in plan.brokers}
        return self.broker_ids >= ids and self.controller_id in ids


@dataclass(frozen=True, slots=True)
class Contact:
    """The address of a broker, and how to log in to it: by PLAINTEXT if `security` is None."""

    address: str
    security: "ClientSecurity | None" = None


def page_problem(metrics_port: int) -> str | None:
    """The reason from a broker's page /readyz why it is not ready; None if it is ready."""
    connection = http.client.HTTPConnection(HOST, metrics_port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        sentence = response.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        return "It does not respond."
    finally:
        connection.close()
    return None if response.status == http.client.OK else sentence


def service_problem(name: str, port: int, trusted: Path | None) -> str | None:
    """Why an HTTP service does not serve yet; None if it responds, even with a request to log in. Uses TLS if
    `trusted`, the CA certificate, is set."""
    connection = (
        http.client.HTTPConnection(HOST, port, timeout=ASK_TIMEOUT_S)
        if trusted is None
        else http.client.HTTPSConnection(
            HOST, port, timeout=ASK_TIMEOUT_S, context=ssl.create_default_context(cafile=str(trusted))
        )
    )
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return f"The {SERVICES[name].title} does not respond."
    finally:
        connection.close()
    return None


def metadata_problem(broker_id: int, contact: Contact) -> str | None:
    """Why a broker does not serve its clients yet; None if it responds and its metadata contains itself."""
    view = view_of(contact)
    if view is None:
        return "It does not respond."
    return None if broker_id in view.broker_ids else "It has not joined its cluster."


def zookeeper_problem(port: int) -> str | None:
    from kaspar.zookeeper import State, state_of

    match state_of(HOST, port):
        case State.SERVING:
            return None
        case State.NOT_SERVING:
            return "It is waiting for a majority of its ensemble."
        case State.DOWN:
            return "It does not respond."


def view_of(contact: Contact, timeout_s: float = ASK_TIMEOUT_S) -> ClusterView | None:
    """This broker's view; None if it does not respond."""
    from kaspar.client import Client

    try:
        with Client(
            contact.address, client_id="kaspar-supervisor", timeout_s=timeout_s, security=contact.security
        ) as client:
            response = client.refresh_metadata([])
    except (KasparError, OSError):
        return None
    controller_id = response.controller_id if response.controller_id >= 0 else None
    return ClusterView(frozenset(broker.node_id for broker in response.brokers), controller_id)


def first_view(contacts: Sequence[Contact]) -> ClusterView | None:
    """The view of the first broker that responds."""
    return next((view for contact in contacts if (view := view_of(contact)) is not None), None)
