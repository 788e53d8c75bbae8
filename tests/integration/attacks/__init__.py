"""Attacks on a running broker with every kind of secured listener and an authorizer, each tried over sockets.

Every test ends with the same question: are honest clients still served, and has nothing run into a bug?
"""
