"""Every API with and without the permissions that it needs: both brokers run the StandardAuthorizer, with equal ACLs.

On a PLAINTEXT listener everybody is User:ANONYMOUS, so it is the host that tells clients apart. The scenarios are
prepared from 127.0.0.1, which may do everything; what is compared is the response to a guest from 127.0.0.2, who may do
what the ACLs of the moment say.
"""
