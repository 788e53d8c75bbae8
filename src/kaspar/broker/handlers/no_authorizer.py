"""What is said to whoever asks about ACLs: there are none, because nobody is asked for permission."""

from typing import Final

from kaspar.base.errors import ErrorCode

CODE: Final = ErrorCode.SECURITY_DISABLED
MESSAGE: Final = "No Authorizer is configured."
