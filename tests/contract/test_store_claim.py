from headway.contracts.stores.claim import *  # noqa: F403 - tests are found by their names
