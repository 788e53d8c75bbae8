"""Authorization: every request is checked against the ACLs before anything is done or revealed.

- `access`: the authorizer as the broker uses it, with its audit log; `permission`: the gate of the request pipeline
- `guards`: what a guard is, and the kinds that many APIs share; `topics`, `metadata`, `groups`, `offset_fetch`,
  `transactions`, `configs`, `cluster`, `delegation_tokens`: the guards of each API; `records`: the topics of Produce
  and Fetch
- `table`: for each API the permissions that it needs, and the response without them

None of this is loaded without an authorizer.
"""
