"""A Python client, or kcat, behind JSON lines: `python -m tests.compat.clients.python NAME BOOTSTRAP-SERVERS`."""
