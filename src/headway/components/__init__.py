"""CREATE · SCHEDULE · CANCEL · STATUS: what can be asked of Headway, one component each.

Each module has two halves. The *core* is plain functions over a store, typed: the library, the command line and REST
call them in their own process. The *component* is a class that turns a message into a call of its core and the outcome
into a reply, with further messages if others are to act: `message → reply + messages`. It acts on messages of its own
type only, and does nothing that the core can't do.

Every change is told in the log (`observe/trail.py`) by the core, so no way in goes unseen.
"""
