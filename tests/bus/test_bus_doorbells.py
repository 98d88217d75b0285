from headway.contracts.buses.doorbells import *  # noqa: F403 - tests are found by their names
