"""CLAIM → RUN → FINISH: the process that runs jobs.

1. A `Lane` per queue claims due jobs in batches, as many as it has room for (`lane.py`).
2. Each job becomes an `Attempt`: executed, judged, and turned into a move (`attempt.py`, `judge.py`).
3. The `Finisher` records moves in batches (`finisher.py`).
4. The `Keeper` holds on to the leases from a thread of its own, which no job can starve (`keeper.py`).
5. `Shipping` carries what running jobs say and write (`shipping.py`).
6. `Worker` is the life of all of these: start, pause, drain, stop (`worker.py`).
"""
