"""Clients in processes of their own, so that they can be killed and paused. Each notes in a journal what it does.

An actor is started with its settings as one JSON object (`start`), and ends at SIGTERM when it has finished what it had
begun. They are ordinary programs on the stock client, librdkafka: whatever they need to be safe is what users need.
"""
