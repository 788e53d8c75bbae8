"""The process of `Broker(process=True)`: runs a broker and writes its port to a pipe when it is ready."""

import os
import sys

from kaspar.broker.run import run_broker
from kaspar.broker.server import Broker
from kaspar.config import BrokerSettings


def main() -> int:
    ready_fd = int(sys.argv[1])
    values = dict(argument.split("=", 1) for argument in sys.argv[2:])

    def ready(broker: Broker) -> None:
        os.write(ready_fd, str(broker.port).encode())
        os.close(ready_fd)

    return run_broker(BrokerSettings.of(values), ready=ready)


if __name__ == "__main__":
    sys.exit(main())
