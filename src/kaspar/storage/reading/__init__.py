"""Reads: from an offset or a timestamp to bytes, copied or sent straight from the file."""
