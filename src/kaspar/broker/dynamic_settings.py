"""Updates the broker's settings when its dynamic configs in the image change."""

from collections.abc import Callable

from kaspar.base.ids import BrokerId
from kaspar.broker.services import CurrentSettings
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageChange


class DynamicSettings:
    def __init__(self, current: CurrentSettings, broker_id: BrokerId) -> None:
        self.on_change: list[Callable[[ClusterImage], None]] = []
        """Called in order when the settings have changed, with the image that contains them."""
        self._current = current
        self._broker_id = broker_id

    def follow(self, change: ImageChange) -> None:
        if change.new.broker_configs is not change.old.broker_configs:
            self.apply(change.new)

    def apply(self, image: ClusterImage) -> None:
        self._current.settings = self._current.settings.with_dynamic(
            default=image.cluster_broker_config, broker=image.broker_config(self._broker_id)
        )
        for changed in self.on_change:
            changed(image)
