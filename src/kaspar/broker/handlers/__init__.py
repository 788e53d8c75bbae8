"""One module for each API."""
