"""Groups and committed offsets, through every client that can be a member."""
