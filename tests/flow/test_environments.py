"""Where users run it: forked processes, gunicorn with --preload, plug-in packages of others."""

from __future__ import annotations

import textwrap
import threading
import urllib.request
from pathlib import Path

from headway import Headway
from tests.flow.conftest import ours
from tests.flow.processes import Processes, Project
from tests.flow.waiting import block_until
from tests.servers import free_port


def test_an_app_in_use_survives_a_fork(store_url: str, processes: Processes, tmp_path: Path) -> None:
    """In a process of its own: a test run has threads of others that a fork would tear."""
    script = tmp_path / "forking.py"
    script.write_text(
        textwrap.dedent(f"""
        import asyncio, os, sys
        from headway import Headway
        app = Headway({store_url!r})

        @app.job(name="f")
        async def f(n: int) -> None: ...

        f.submit(0)                                      # in use: a thread and connections
        children = []
        for number in (1, 2):
            child = os.fork()
            if child == 0:
                f.submit(number)
                asyncio.run(f.asubmit(number + 10))
                app.close()
                os._exit(0)
            children.append(child)
        f.submit(3)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        f.submit(4)
        assert statuses == [0, 0], statuses
        assert len(app.jobs()) == 7, app.jobs()
        app.close()
        """)
    )
    process = processes.python(str(script))
    assert process.ended() == 0, process.text()


def test_gunicorn_with_preload_serves_a_site_that_submits_jobs(project: Project, tmp_path: Path) -> None:
    app = project.app("""
        @app.job(name="visit")
        async def visit(pid: int) -> int:
            return pid

        visit.submit(os.getpid())                # used by the master, before it forks

        def site(environ, start_response):
            job = visit.submit(os.getpid())
            start_response("200 OK", [])
            return [str(job.id).encode()]
    """)
    port = free_port()
    server = project.processes.python(
        *("-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"127.0.0.1:{port}", "jobs:site"),
    )

    def answered() -> bool:
        assert server.running, server.text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    block_until(answered, "gunicorn to answer")
    for _ in range(20):
        assert answered()
    assert server.stop() == 0
    jobs = app.jobs(limit=1000)
    assert len(jobs) == 23, "one at the import here, one by the master, one for each of 21 visits"


def test_the_name_of_a_job_in_the_main_module_is_that_of_its_file(processes: Processes, tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(
        textwrap.dedent(f"""
        from headway import Headway
        app = Headway("sqlite:///{tmp_path}/headway.db")

        @app.job
        async def sell(n: int) -> int:
            return n * 2

        if __name__ == "__main__":
            print(sell.submit(21).name)
        """)
    )
    submitter = processes.python(str(script))
    assert submitter.ended() == 0
    assert submitter.text().strip() == "shop.sell"
    worker = processes.headway("worker", "--app", "shop:app", "--log-json")
    app = Headway(f"sqlite:///{tmp_path}/headway.db")
    try:
        [job] = app.jobs()
        assert job.wait(60).result == 42
    finally:
        app.close()
    assert worker.stop() == 0


def test_many_threads_of_one_process_may_begin_at_once(store_url: str) -> None:
    before = ours()
    app = Headway(store_url)

    @app.job
    async def f(n: int) -> None: ...

    start = threading.Barrier(8)

    def submit(number: int) -> None:
        start.wait()
        f.submit(number)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(app.jobs()) == 8
    app.close()
    assert ours() == before


def test_a_program_that_forgets_to_close_can_still_end(store_url: str, processes: Processes, tmp_path: Path) -> None:
    script = tmp_path / "forgetful.py"
    script.write_text(
        f"from headway import Headway\napp = Headway({store_url!r})\n"
        "@app.job(name='f')\nasync def f() -> None: ...\nprint(f.submit().state)\n"
    )
    process = processes.python(str(script))
    assert process.ended() == 0
    assert process.text().strip() == "scheduled"
