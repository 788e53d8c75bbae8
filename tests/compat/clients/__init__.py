"""Clients that stay: members of groups, transactional producers and the admin calls about groups.

`api.py` has the one vocabulary of all scenarios. Each client runs in a process of its own, so that it can be killed;
the programs of other languages are beside the drivers, those of the Python clients and of kcat in `python/`.
"""
