"""Groups in the console.

- `listing`: all groups, with search, sorting and pages
- `describing`: one group with its members, partitions and lag
- `resetting`: other offsets for a group, previewed and then set as they were shown
- `changing`: deletion of groups and of offsets, removal of members
"""
