"""Listeners and connections: frames in, responses out, and the request pipeline between them."""
