"""Topics in the console.

- `listing`: all topics, with search, sorting and pages
- `describing`: one topic with its partitions, offsets and sizes
- `changing`: creation, deletion, more partitions, and deletion of records
- `consumers`: the groups that read a topic
"""
