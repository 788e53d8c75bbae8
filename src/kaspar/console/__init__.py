"""The web console: a page, and the HTTP API that it uses."""
