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


def test_a_separate_package_adds_a_kind_of_job(project: Project, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    info = packages / "headway_shout-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headway-shout\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headway.executors]\nshout = headway_shout:make\n")
    (packages / "headway_shout.py").write_text(
        textwrap.dedent("""
        import msgspec
        from headway.executors.contract import Completed, Defaults, Running, Scheduled
        from headway.model.retry import Retry

        class Shout:
            kind = "shout"
            defaults = Defaults(timeout=5, retry=Retry(max_attempts=3, wait=0.01))

            def __init__(self, setup):
                self.polls, self.later = {}, set()

            async def start(self): ...
            async def close(self): ...

            async def submit(self, claim, context):
                payload = msgspec.json.decode(claim.payload)
                if payload.get("fail"):
                    raise ValueError(f"attempt {claim.attempt}")
                if payload.get("later") and claim.id not in self.later:
                    self.later.add(claim.id)
                    return Scheduled(0.05)
                if payload.get("outside"):
                    return Running(0.02)
                return Completed(msgspec.json.encode(payload["text"].upper()))

            async def poll(self, claim, context):
                self.polls[claim.id] = self.polls.get(claim.id, 0) + 1
                if msgspec.json.decode(claim.payload).get("forever") or self.polls[claim.id] < 3:
                    return Running(0.02)
                return Completed(b'"polled"')

            async def cancel(self, claim, context):
                print("cancelled outside", claim.id, flush=True)

        def make(setup):
            return Shout(setup)
        """)
    )
    app = project.app("")
    with_plugin = {"PYTHONPATH": str(packages)}
    simple = app.submit("shout", {"text": "hello"}, name="say hello")
    worker = project.worker("--lease", "5", **with_plugin)
    assert simple.wait(60).result == "HELLO"
    assert (simple.kind, simple.name) == ("shout", "say hello")
    assert app.submit("shout", {"text": "x", "outside": True}, name="outside").wait(60).result == "polled"
    assert app.submit("shout", {"text": "later", "later": True}, name="later").wait(60).result == "LATER"
    failed = app.submit("shout", {"fail": True}, name="failing").wait(60)
    assert (failed.state, failed.attempt) == ("failed", 3), "the kind's own defaults hold"
    endless = app.submit("shout", {"outside": True, "forever": True}, name="endless")
    block_until(lambda: endless.refresh().state == "running", "the endless job to run")
    app.cancel(endless)
    assert endless.wait(60).state == "cancelled"
    assert f"cancelled outside {endless.id}" in worker.text()
    assert worker.stop() == 0

    plain = project.worker()
    parked = app.submit("shout", {"text": "y"}, name="no executor here")
    block_until(lambda: parked.refresh().label == "parked", "the job to be parked")
    assert plain.stop() == 0


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
