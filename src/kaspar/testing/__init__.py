"""A broker for your tests: on a free port, ready in a fraction of a second, gone when the test is.

    from kaspar.testing import Broker

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

`kaspar_broker` is a pytest fixture that does the same.
"""

from kaspar.testing.broker import Broker

__all__ = ["Broker"]
