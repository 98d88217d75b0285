"""What every store promises of the life of a job: `from headway.contracts.stores import *` in a test file runs it all.

Bring a fixture `make_store`: called without arguments, what it gives makes a store that goes by the fixture `clock`,
each time another one on the same jobs, as another process would open it.
"""

from headway.contracts.stores.after import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.claim import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.conflicts import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.dedupe import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.fencing import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.leases import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.states import *  # noqa: F403 - tests are found by their names
from headway.contracts.stores.submit import *  # noqa: F403 - tests are found by their names
