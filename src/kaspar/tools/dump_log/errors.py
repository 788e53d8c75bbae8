"""The error for a file that cannot be dumped. Messages are those of Kafka's exceptions, because scripts may look for
them.
"""

from kaspar.base.errors import KasparError


class CannotDump(KasparError):
    pass
