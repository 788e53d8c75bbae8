"""The HTTP API, which is that of Confluent's registry 8.x. `make_app` builds the application.

Each endpoint is one declaration with its path, parameters, errors and handler. Routes, checks, forwarding and the
OpenAPI description are derived from it.
"""

from kaspar.registry.api.app import make_app

__all__ = ["make_app"]
