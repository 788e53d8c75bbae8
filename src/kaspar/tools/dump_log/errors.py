"""Why a file cannot be dumped. The sentences are those of Kafka's exceptions, which scripts may look for."""

from kaspar.base.errors import KasparError


class CannotDump(KasparError):
    pass
