"""Services over real sockets."""
