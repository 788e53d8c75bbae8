"""Properties of a client or a formatter on the command line: `--command-property key=value`."""

from collections.abc import Iterable


def key_values(words: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` words. A key alone has an empty value."""
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def are_addresses(servers: str) -> bool:
    """Whether this is host:port, or a list of them separated by commas."""
    for address in servers.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal()):
            return False
    return True
