"""The vault: what only holders of a key can read.

`envelope` is the lock (and the one home of `cryptography`), `keys` is where keys come from, `vault` is what everybody
asks, `rotation` changes the key, `redaction` keeps what was revealed out of output and logs.
"""
