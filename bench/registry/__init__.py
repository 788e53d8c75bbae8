"""`make bench-registry`: the schema registry compared with Apicurio's, and the REST proxy.

A case is in a file of its kind (`reads.py`) and in the list of `cases.py`.
"""
