from headway.contracts.buses.news import *  # noqa: F403 - tests are found by their names
