from headway.contracts.stores.dedupe import *  # noqa: F403 - tests are found by their names
