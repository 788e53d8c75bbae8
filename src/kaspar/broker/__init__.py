"""The server: sockets, requests, waiting, and a handler for each API."""
