"""What all HTTP services share: listeners, TLS, authentication, limits, errors as JSON, and the server itself."""
