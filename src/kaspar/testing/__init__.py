"""Brokers for your tests, on free ports. Their data is removed after the test.

    from kaspar.testing import Broker, Cluster

    with Broker() as broker:  # ready in a fraction of a second
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    with Broker(registry=True, rest=True) as broker:  # needs kaspar[rest]
        client = SchemaRegistryClient({"url": broker.registry_url})

    with Broker(console=True, monitor=True) as broker:  # needs kaspar[console]
        print(broker.console_url)

    with Cluster(brokers=3) as cluster:  # needs Java and kaspar[spark]
        cluster.kill(cluster.controller_id())

The pytest fixture `kaspar_broker` is a `Broker`, and `kaspar_broker_with_registry` one with a schema registry.
"""

from kaspar.testing.broker import Broker
from kaspar.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]
