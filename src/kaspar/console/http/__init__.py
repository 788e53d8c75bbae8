"""The console's HTTP layer: declarations of resources, the checks of every request, and the files of the page.

- `endpoint`: declarations of reads and changes, and the `Call` that their handlers get
- `guard`: the checks that every request passes before a handler sees it, and the headers of every response
- `errors`: errors as an HTTP status and a sentence
- `events`: server-sent events
- `audit`: a line for each change
- `assets`: the files of the page
"""
