from headway.contracts.stores.leases import *  # noqa: F403 - tests are found by their names
