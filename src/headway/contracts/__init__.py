"""What every store, bus, executor and place for output promises: suites of tests that any package can run on its own.

A package that brings one imports the suite into a test file and says in fixtures what is to be tested; docs/plugins.md
shows each. They need pytest, and pytest-asyncio in its mode `auto`.
"""

import pytest

# Before the suites are imported: whoever runs them wants to see what was compared, not just that it differed.
pytest.register_assert_rewrite(*(f"headway.contracts.{name}" for name in ("stores", "buses", "executors", "outputs")))
