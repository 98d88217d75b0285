"""What every bus promises: `from headway.contracts.buses import *` in a test file runs it all.

Bring a fixture `bus_url`: the address of a broker that the test may use, fit for `headway.bus.make_bus`.
"""

from headway.contracts.buses.doorbells import *  # noqa: F403 - tests are found by their names
from headway.contracts.buses.news import *  # noqa: F403 - tests are found by their names
