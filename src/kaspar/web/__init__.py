"""What every HTTP face shares: listeners, TLS, log-in, limits, errors as JSON, and the server itself."""
