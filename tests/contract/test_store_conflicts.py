from headway.contracts.stores.conflicts import *  # noqa: F403 - tests are found by their names
