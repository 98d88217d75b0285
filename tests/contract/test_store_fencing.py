from headway.contracts.stores.fencing import *  # noqa: F403 - tests are found by their names
