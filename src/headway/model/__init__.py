"""WHAT a job is: states, records, rules. Pure: no I/O, no clock."""
