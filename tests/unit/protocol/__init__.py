"""The protocol against kio, message by message and version by version."""
