"""TELL PEOPLE: rules say what is worth a message, and where it goes.

What happens (a job fails, a schedule misses its time, a worker is lost) is written down in the transaction in which it
happens; what holds (a backlog, a queue that nobody serves) is looked at every few seconds. One process at a time, by a
duty row, decides what follows (`rules.py`, pure) and delivers the messages (`courier.py`), at least once.
"""
