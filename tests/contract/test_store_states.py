from headway.contracts.stores.states import *  # noqa: F403 - tests are found by their names
