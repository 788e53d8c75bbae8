"""Reads: from an offset or a timestamp to bytes, copied or sent directly from the file."""
