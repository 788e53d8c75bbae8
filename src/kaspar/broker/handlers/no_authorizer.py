"""The response to requests about ACLs on a broker without an authorizer."""

from typing import Final

from kaspar.base.errors import ErrorCode

CODE: Final = ErrorCode.SECURITY_DISABLED
MESSAGE: Final = "No Authorizer is configured."
