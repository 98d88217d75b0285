"""WHO: tokens, users, sessions, login links, throttling, and the audit log of what they did.

Nothing here knows HTTP: the API hands over what a request shows (`Shown`) and is told who it is (`Doorkeeper`).
"""
