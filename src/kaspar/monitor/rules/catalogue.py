"""All alerts, in the order of the rules file and of the documentation page."""

from typing import Final

from kaspar.monitor.rules.alert import Group
from kaspar.monitor.rules.cluster_alerts import BROKER_ALERTS, REPLICATION_ALERTS
from kaspar.monitor.rules.group_alerts import GROUP_ALERTS
from kaspar.monitor.rules.load_alerts import LOAD_ALERTS
from kaspar.monitor.rules.service_alerts import CANARY_ALERTS, SERVICE_ALERTS
from kaspar.monitor.rules.storage_alerts import STORAGE_ALERTS

GROUPS: Final[tuple[Group, ...]] = (
    BROKER_ALERTS,
    REPLICATION_ALERTS,
    STORAGE_ALERTS,
    LOAD_ALERTS,
    GROUP_ALERTS,
    CANARY_ALERTS,
    SERVICE_ALERTS,
)
ALERTS: Final = {alert.name: alert for group in GROUPS for alert in group.alerts}
