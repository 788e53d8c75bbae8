"""What a cluster keeps of its settings when it is created, and when `kaspar up` has made it larger."""

from pathlib import Path

from kaspar.base.errors import Refused
from kaspar.client.admin.configs import ConfigResource, ResourceType, describe_configs
from kaspar.client.admin.session import Admin
from kaspar.supervisor.cluster_settings import MIN_INSYNC_REPLICAS, keep_min_insync_replicas
from kaspar.supervisor.readiness import Contact
from tests.peers.kaspar import KasparProcess

ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


def kept(broker: KasparProcess) -> str | None:
    with Admin(broker.bootstrap) as admin:
        found = describe_configs(admin, [ALL_BROKERS])[ALL_BROKERS]
    assert not isinstance(found, Refused)
    setting = found.get(MIN_INSYNC_REPLICAS)
    return None if setting is None else setting.value


def test_min_insync_replicas_is_kept_by_the_cluster_and_raised_when_it_grows(tmp_path: Path) -> None:
    with KasparProcess(tmp_path, overrides={MIN_INSYNC_REPLICAS: "1"}) as broker:
        assert kept(broker) == "1"
        keep_min_insync_replicas(Contact(broker.bootstrap), "2")
        assert kept(broker) == "2"
        broker.restart()
        assert kept(broker) == "2", "whatever its file says"
