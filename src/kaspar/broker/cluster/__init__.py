"""This broker as a member of a cluster: its session, the controller that it follows or runs, and its shutdown."""
