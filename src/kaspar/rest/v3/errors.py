"""The errors that only version 3 has."""

from typing import Final

from kaspar.rest.errors import BAD_REQUEST, TOO_LARGE, ErrorKind, RestError

MISSING: Final = ErrorKind(404, 404)
INVALID_BATCH: Final = ErrorKind(422, 42208, "Error producing batch. ")
NO_BODY: Final = "Null input provided. Data is required."


def missing(sentence: str = "HTTP 404 Not Found") -> RestError:
    """The error for a resource that does not exist."""
    return RestError(MISSING, sentence)


def refused_record(sentence: str) -> RestError:
    """The error for a record that is valid JSON but cannot be written."""
    return RestError(BAD_REQUEST, f"Bad Request: {sentence}")


def too_large(limit: int) -> RestError:
    return RestError(TOO_LARGE, f"Produce request size is larger than allowed threshold of {limit} bytes.")
