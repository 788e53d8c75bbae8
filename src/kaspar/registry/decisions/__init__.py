"""Pure decisions about writes: a function takes the state and a request, and returns records and a reply. Only
replaying the records changes the state. A rejected request raises RegistryError.
"""
