"""The other brokers, from the image: which of them may be in sync, and how they are reached."""

from typing import TYPE_CHECKING

from kaspar.base.ids import BrokerId
from kaspar.broker.listeners import inter_broker_endpoint
from kaspar.broker.security.between_brokers import ConnectToBroker
from kaspar.broker.services import CurrentSettings
from kaspar.metadata.images import ImageSource

if TYPE_CHECKING:  # not loaded by a broker without a cluster
    from kaspar.client.asynchronous import AsyncConnection


class ImageClusterView:
    """What the leaders of partitions have to know about other brokers."""

    def __init__(self, images: ImageSource, settings: CurrentSettings) -> None:
        self._images = images
        self._settings = settings

    @property
    def replica_lag_time_max_ms(self) -> int:
        return self._settings.config.replica_lag_time_max_ms

    def eligible_epoch(self, broker_id: BrokerId) -> int | None:
        """The epoch of a broker that may be in sync; None if it is down or shutting down."""
        image = self._images.current
        registration = image.brokers.get(broker_id)
        return None if registration is None or broker_id in image.shutting_down else registration.epoch


class BrokerConnector:
    """Connects to other brokers at their addresses in the current image."""

    def __init__(self, images: ImageSource, settings: CurrentSettings, connect: ConnectToBroker) -> None:
        self._images = images
        self._settings = settings
        self._connect = connect

    async def connect(self, broker_id: BrokerId, client_id: str) -> "AsyncConnection":
        """Connect to a broker. Raises OSError while it is not up or cannot be reached. The records of responses are
        views of the received bytes.
        """
        config = self._settings.config
        registration = self._images.current.brokers.get(broker_id)
        endpoint = None if registration is None else inter_broker_endpoint(registration.endpoints, config)
        if endpoint is None:
            raise ConnectionRefusedError(f"broker {broker_id} is not up")
        return await self._connect(
            endpoint.host,
            endpoint.port,
            client_id=client_id,
            timeout_s=config.replica_socket_timeout_ms / 1000,
            records_in_place=True,
        )
