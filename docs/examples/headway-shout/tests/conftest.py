pytest_plugins = ["headway.contracts.fixtures"]
