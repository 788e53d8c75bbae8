"""How commands reach the observed cluster, so that a finding's command can be run unchanged."""

import shlex
from dataclasses import dataclass
from typing import Final

DEFAULT_SERVERS: Final = "localhost:9092"


@dataclass(frozen=True, slots=True)
class Access:
    servers: str = DEFAULT_SERVERS
    kaspar_options: tuple[str, ...] = ()
    """What `kaspar` commands need to choose the cluster: `--profile ...`, `--config ...`; by default `-b` with the
    servers, unless `kaspar` takes these anyway."""
    config_file: str | None = None
    """Client properties for Kafka's tools (`--command-config`)."""
    folder: str | None = None
    """Of `kaspar up`, if it runs the cluster."""

    def kaspar(self, *words: str) -> str:
        """A command of `kaspar` for this cluster."""
        options = self.kaspar_options
        if not options and self.servers != DEFAULT_SERVERS:
            options = ("-b", self.servers)
        return shlex.join(["kaspar", *words, *options])

    def kafka(self, tool: str, *words: str) -> str:
        """A command with Kafka's name for this cluster."""
        config = [] if self.config_file is None else ["--command-config", self.config_file]
        return shlex.join([tool, "--bootstrap-server", self.servers, *config, *words])

    def plan(self, name: str) -> str:
        """Execute one of the reassignments that the doctor plans (plans.py)."""
        execute = self.kafka("kafka-reassign-partitions", "--execute", "--reassignment-json-file", "/dev/stdin")
        return f"{self.kaspar('doctor', '--plan', name)} | {execute}"

    def start_broker(self) -> str:
        """Restart a broker: the whole folder, or on the broker's own machine with its own settings."""
        if self.folder is not None:
            return shlex.join(["kaspar", "up", "--dir", self.folder])
        return "kafka-server-start server.properties"
