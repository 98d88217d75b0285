"""What we claim, measured: `headway bench`.

1. A `Site` prepares stores for one engine: fresh ones, copies, rows by the million (`sites/`).
2. Every measurement runs in child processes (`children.py`), which play a *role*: Headway through its public face
   (`ours.py`), or the driver alone on the same rows (`bare/`): that is the ceiling.
3. `measures.py` lets both play in turn and takes medians; `report.py` sets them beside the targets.
"""
