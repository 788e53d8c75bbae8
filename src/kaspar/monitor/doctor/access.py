"""How commands access the observed cluster, so that a finding's command can be run unchanged."""

import shlex
from dataclasses import dataclass
from typing import Final

DEFAULT_SERVERS: Final = "localhost:9092"


@dataclass(frozen=True, slots=True)
class Access:
    servers: str = DEFAULT_SERVERS
    kaspar_options: tuple[str, ...] = ()
    """The options with which `kaspar` commands select the cluster: `--profile ...`, `--config ...`. By default `-b`
    with the servers, unless they are `kaspar`'s default."""
    config_file: str | None = None
    """A file with client properties for Kafka's tools (`--command-config`)."""
    folder: str | None = None
    """The folder of `kaspar up`, if it runs the cluster."""

    def kaspar(self, *words: str) -> str:
        """A `kaspar` command for this cluster."""
        options = self.kaspar_options
        if not options and self.servers != DEFAULT_SERVERS:
            options = ("-b", self.servers)
        return shlex.join(["kaspar", *words, *options])

    def kafka(self, tool: str, *words: str) -> str:
        """A command of Kafka's tools for this cluster."""
        config = [] if self.config_file is None else ["--command-config", self.config_file]
        return shlex.join([tool, "--bootstrap-server", self.servers, *config, *words])

    def plan(self, name: str) -> str:
        """A command that executes one of the reassignments planned by the doctor (plans.py)."""
        execute = self.kafka("kafka-reassign-partitions", "--execute", "--reassignment-json-file", "/dev/stdin")
        return f"{self.kaspar('doctor', '--plan', name)} | {execute}"

    def start_broker(self) -> str:
        """A command that restarts a broker: the whole folder, or on the broker's own machine with its own settings."""
        if self.folder is not None:
            return shlex.join(["kaspar", "up", "--dir", self.folder])
        return "kafka-server-start server.properties"
