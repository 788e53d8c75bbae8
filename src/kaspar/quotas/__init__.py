"""Client quotas as pure cores: rates over windows, which quota applies to a client, and how long a client is throttled.
No clock and no socket: callers pass the time.
"""
