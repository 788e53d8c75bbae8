"""The wire client: its core without a socket, and its blocking shell against a scripted broker."""
