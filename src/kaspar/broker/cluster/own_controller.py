"""The cluster's controller while this broker runs it: its shell, the feed that other brokers follow, and the watch over
brokers.
"""

import asyncio
from collections.abc import Callable

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.broker.cluster.broker_watch import BrokerWatch
from kaspar.broker.services import CurrentSettings
from kaspar.controller import Controller, ControllerShell
from kaspar.controller.channel import Channel
from kaspar.controller.events import RebalanceLeaders
from kaspar.controller.feed import ImageFeed
from kaspar.controller.metrics import ControllerMetrics
from kaspar.metadata import AdvertisedEndpoint, Store
from kaspar.metadata.images import ImageUpdate

log = get_log(__name__)


class OwnController:
    """`shell` and `feed` are None while another broker is the controller."""

    def __init__(
        self,
        broker_id: BrokerId,
        settings: CurrentSettings,
        *,
        channel: Channel,
        on_bug: Callable[[Exception], None],
        metrics: ControllerMetrics,
    ) -> None:
        self.shell: ControllerShell | None = None
        self.feed: ImageFeed | None = None
        self._broker_id = broker_id
        self._settings = settings
        self._channel = channel
        self._on_bug = on_bug
        self._metrics = metrics

    async def control(
        self, store: Store, endpoint: AdvertisedEndpoint, on_update: Callable[[ImageUpdate], None]
    ) -> None:
        """Take the controller's seat and keep it for as long as possible. Raises NoLongerController if it is taken."""
        address = (endpoint.host, endpoint.port)
        shell = ControllerShell(
            store,
            Controller(self._settings.settings),
            address=address,
            on_bug=self._on_bug,
            metrics=self._metrics,
        )
        feed = ImageFeed()
        watch = BrokerWatch(shell, self._broker_id, endpoint.listener)
        for follower in (on_update, feed.publish, watch.follow):
            shell.add_follower(follower)
        rebalancing: asyncio.Task[None] | None = None
        try:
            await shell.start()
            self.shell, self.feed = shell, feed
            self._channel.connect(shell)
            log.info("this broker is the controller", node=self._broker_id, epoch=shell.image.controller_epoch)
            rebalancing = asyncio.create_task(self._rebalance_leaders(shell), name="automatic leader balance")
            await shell.ended.wait()
        finally:
            self.shell = self.feed = None
            self._channel.disconnect()
            if rebalancing is not None:
                rebalancing.cancel()
                await asyncio.gather(rebalancing, return_exceptions=True)
            await watch.stop()
            await shell.stop()

    async def move(self, to: BrokerId | None) -> None:
        """Leave the seat to that broker, or to any other. Raises Refused if nothing has changed, or the outcome is
        unknown.
        """
        shell = self.shell
        if shell is None:
            raise Refused(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
        others = [each for each in shell.image.brokers if each != self._broker_id and shell.image.is_active(each)]
        if to == self._broker_id:
            return
        if to is not None and to not in others:
            raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {to} is not up.")
        if not others:
            raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, "No other broker is up.")
        log.info("moving the controller", to="any other broker" if to is None else f"broker {to}")
        await shell.resign(to)

    async def _rebalance_leaders(self, shell: ControllerShell) -> None:
        while True:
            config = self._settings.config
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            if not config.auto_leader_rebalance_enable:
                continue
            try:
                while await shell.submit(RebalanceLeaders()):
                    pass
            except Refused as refusal:
                log.warning("leaders cannot be balanced now", reason=refusal.message)
