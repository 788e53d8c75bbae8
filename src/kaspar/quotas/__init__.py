"""How much clients may use, as pure cores: rates over windows, which quota applies to whom, and how long a client is
throttled. No clock and no socket: callers pass the time.
"""
