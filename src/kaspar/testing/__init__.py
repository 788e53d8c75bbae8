"""Brokers for your tests: on free ports, removed after the test.

    from kaspar.testing import Broker, Cluster

    with Broker() as broker:  # ready in a fraction of a second
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    with Cluster(brokers=3) as cluster:  # needs Java and kaspar[spark]
        cluster.kill(cluster.controller_id())

`kaspar_broker` is a pytest fixture of a `Broker`.
"""

from kaspar.testing.broker import Broker
from kaspar.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]
