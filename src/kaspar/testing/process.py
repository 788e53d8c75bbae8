"""The process behind `Broker(process=True)`: runs a broker and says on a pipe when it is ready."""

import os
import sys

from kaspar.broker.run import run_broker
from kaspar.config import BrokerSettings


def main() -> int:
    ready_fd = int(sys.argv[1])
    values = dict(argument.split("=", 1) for argument in sys.argv[2:])

    def ready(_: object) -> None:
        os.write(ready_fd, b"+")
        os.close(ready_fd)

    return run_broker(BrokerSettings.of(values), ready=ready)


if __name__ == "__main__":
    sys.exit(main())
