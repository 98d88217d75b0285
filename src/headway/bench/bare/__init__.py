"""The ceilings: the same roles played by the driver alone, on the same tables and rows, without Headway's code."""
