"""Kind `script`: scripts on servers, by SSH; and kind `probe`: whether a server can be reached.

Follow one script: `loading` puts together what it needs, `hosts` gives it a connection, `run` begins it by an order
(`orders`) to a shell over there (`runner`, `far.sh`), which starts a supervisor (`supervisor.sh`) and answers; `run`
reads what it writes (`spool`) until it ends; `attempt` sees it through lost connections, timeouts and cancels, and
`executor` makes an attempt of each claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.executors.contract import Executor, Setup, require

if TYPE_CHECKING:
    from headway.executors.script.hosts import Hosts
    from headway.executors.script.loading import Loader


def make(setup: Setup) -> Executor:
    """The executor for a worker."""
    from headway.executors.script.collecting import Collector
    from headway.executors.script.executor import ScriptExecutor
    from headway.executors.script.loading import StoredAlarm, StoredPast
    from headway.executors.script.task import Parts

    require("asyncssh", extra="server")
    parts = Parts(
        clock=setup.clock,
        load=_loader(setup),
        past=StoredPast(setup.store),
        hosts=_hosts(setup),
        keep=Collector(setup.store, setup.outputs),
        alarm=StoredAlarm(setup.store),
    )
    return ScriptExecutor(parts)


def make_probe(setup: Setup) -> Executor:
    """The executor that looks at targets."""
    from headway.executors.script.probing import ProbeExecutor

    require("asyncssh", extra="server")
    return ProbeExecutor(setup.clock, _loader(setup), _hosts(setup))


def _loader(setup: Setup) -> Loader:
    from headway.executors.script.loading import Loader
    from headway.settings import load

    return Loader(setup.secrets, local=load().local_target)


def _hosts(setup: Setup) -> Hosts:
    from headway.executors.script.hosts import Access, Hosts
    from headway.executors.script.link import Link
    from headway.executors.script.local import LocalLink
    from headway.model.target import TargetKind

    async def dial(access: Access) -> Link:
        if access.target.kind is TargetKind.LOCAL:
            return LocalLink()
        from headway.executors.script.ssh import connect

        return await connect(access.target, access.credential, setup.clock)

    return Hosts(dial, setup.clock)
