"""Collecting: people answer on their own device, and only the randomised report leaves it.

`serving` binds a server, `application` and `intake` answer its requests, `writer` commits reports
in groups, and `sqlite_store` or `postgres_store` keeps them. `rldp collect` starts it.
"""
