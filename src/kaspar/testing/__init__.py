"""A broker for your tests."""
