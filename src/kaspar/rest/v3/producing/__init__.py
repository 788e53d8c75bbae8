"""Producing in version 3: many records over one connection, with a response to each."""
