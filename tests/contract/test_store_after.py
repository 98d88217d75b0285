from headway.contracts.stores.after import *  # noqa: F403 - tests are found by their names
