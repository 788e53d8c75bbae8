"""A wire client of whole record batches and any request."""
