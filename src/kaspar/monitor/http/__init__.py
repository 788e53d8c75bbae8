"""The monitor over HTTP: Burrow's v3, Kaspar's own /v1, and the metrics page."""
