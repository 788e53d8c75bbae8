"""The pure parts of kaspar.cli.records."""
