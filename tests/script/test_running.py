"""Scripts on a real host: what goes in arrives byte by byte, what comes out is kept byte by byte."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.executors.contract import Completed, Failed, TimedOut
from headway.executors.script.orders import Work
from tests.script.far import Bench, Job
from tests.sshd import SshServer

ECHO = """
import os, sys
sys.stdout.buffer.write(b"\\0".join([os.fsencode(word) for word in sys.argv[1:]] + [os.environb[b"VALUE"]]))
"""
NASTY = ["", " ", "it's", '"', "$(id)", "`id`", "; rm -rf /", "-n", "--", "a\nb", "\\", "%d%s", "*", "é☃", "\t", "~"]


async def test_a_script_runs_and_tells_its_end(any_bench: Bench) -> None:
    done = await any_bench.script("echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    assert done.code == 3
    assert isinstance(done.answer, Failed)
    assert done.answer.failure.exit == 3
    fine = await any_bench.script("true")
    assert isinstance(fine.answer, Completed)
    assert fine.result["signal"] is None
    assert fine.result["duration"] >= 0


async def test_a_signal_is_told_if_one_has_ended_the_script(any_bench: Bench) -> None:
    for script, code, signal in (
        ("kill -KILL $$", 137, "SIGKILL"),
        ("kill -TERM $$", 143, "SIGTERM"),
        ("echo oops >&2; kill -SEGV $$", 139, "SIGSEGV"),
        ("exit 130", 130, None),
        ("echo oops >&2; sh -c 'kill -KILL $$'; exit 137", 137, None),
    ):
        done = await any_bench.script(script)
        assert (done.code, done.result["signal"]) == (code, signal), script
        assert ("signal" in done.error) == (signal is not None)


async def test_arguments_and_environment_arrive_byte_by_byte(any_bench: Bench) -> None:
    done = await any_bench.script(ECHO, command=("python3",), args=NASTY, env={"VALUE": "".join(NASTY)})
    assert done.stdout.split(b"\0") == [word.encode() for word in [*NASTY, "".join(NASTY)]], done.stderr


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


async def test_any_words_arrive_byte_by_byte(bench: Bench) -> None:
    """Fuzzed: many words at a time, because it is the words that differ, not the runs."""
    batches: list[list[str]] = []

    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(words, min_size=20, max_size=120))
    def gather(batch: list[str]) -> None:
        batches.append(batch)

    await asyncio.to_thread(gather)
    for batch in batches:
        value = "".join(batch)[:2000]
        done = await bench.script(ECHO, command=("python3",), args=batch, env={"VALUE": value})
        assert done.stdout.split(b"\0") == [word.encode() for word in [*batch, value]], done.stderr


async def test_a_script_of_any_text_arrives_byte_by_byte(bench: Bench) -> None:
    script = 'cat "$0"\nexit 0\n\'"$(x)`y`\\n\\0101 %d %s é☃\r\n\x01\x1b'.encode() + bytes(range(128, 256))
    assert (await bench.script(script)).stdout == script


async def test_a_script_of_a_mebibyte_runs(bench: Bench) -> None:
    line = "# " + "x" * 77 + "\n"
    script = "echo begin\n" + line * (1024 * 1024 // len(line) - 1) + 'wc -c < "$0"\n'
    assert (await bench.script(script)).stdout.split() == [b"begin", str(len(script)).encode()]


async def test_standard_input_is_empty(bench: Bench) -> None:
    assert (await bench.script("wc -c; readlink /proc/self/fd/0")).stdout == b"0\n/dev/null\n"


async def test_nothing_but_the_three_streams_is_open_in_a_script(bench: Bench) -> None:
    script = """
import os
def there(number):
    try:
        return os.fstat(number) is not None
    except OSError:
        return False
print([number for number in range(64) if there(number)])
"""
    # Taken in before it runs, the script itself is not open any more.
    assert (await bench.script(script, command=("python3",))).stdout == b"[0, 1, 2]\n"


async def test_a_script_starts_in_a_directory_of_its_own_or_where_it_is_told(bench: Bench, sshd: SshServer) -> None:
    done = await bench.script("pwd; ls -a", files={"a.txt": b"x", "sub/b": b"y"})
    directory, *names = done.stdout.decode().split()
    assert directory.startswith(str(sshd.runs))
    assert names == [".", "..", "a.txt", "sub"]
    assert (await bench.script("pwd", cwd="~")).stdout.decode().strip() == str(sshd.home)
    lost = await bench.script("pwd", cwd="/nowhere")
    assert lost.code == 126
    assert b"/nowhere" in lost.stderr


async def test_files_arrive_byte_by_byte(any_bench: Bench) -> None:
    content = bytes(range(256)) * 40
    done = await any_bench.script("cat data.bin", files={"data.bin": content})
    assert done.stdout == content


async def test_secrets_are_files_in_memory_and_gone_with_the_script(bench: Bench) -> None:
    secret = b"s3\0cret'\n\\0101" + bytes(range(128, 256))
    script = 'cat "$HEADWAY_SECRETS/key"; stat -c "%a" "$HEADWAY_SECRETS/key" >&2; echo "$HEADWAY_SECRETS" >&2'
    done = await bench.script(script, secrets={"key": secret})
    assert done.stdout == secret
    mode, place = done.stderr.decode().split()
    assert mode == "600"
    assert place.startswith("/dev/shm/")
    assert not Path(place).exists()


async def test_a_secret_in_the_environment_is_there_on_request(bench: Bench) -> None:
    done = await bench.script('printf %s "$TOKEN"', secret_env={"TOKEN": b"it's $x\n\\t%"})
    assert done.stdout == b"it's $x\n\\t%"


async def test_the_environment_of_a_script_holds_nothing_else_of_ours(bench: Bench) -> None:
    done = await bench.script("env")
    ours = {line.split("=")[0] for line in done.stdout.decode().splitlines() if "eadway" in line.split("=")[0].lower()}
    assert ours == {"HEADWAY_JOB_ID", "HEADWAY_ATTEMPT"}


async def test_binary_output_and_a_line_of_ten_megabytes_come_whole(bench: Bench) -> None:
    blob = await bench.script("head -c 3000000 /dev/zero; printf '\\377\\376\\0\\r'")
    assert blob.stdout == bytes(3_000_000) + b"\xff\xfe\0\r"
    line = await bench.script("head -c 10000000 /dev/zero | tr '\\0' x")
    assert line.stdout == b"x" * 10_000_000


async def test_output_comes_while_the_script_runs(bench: Bench) -> None:
    script = b"echo first; while [ ! -e go ]; do sleep 0.05; done; echo last"
    job = Job(Work(script=script, command=("/bin/sh",)))
    running = asyncio.create_task(bench.run(job))
    await job.heard.until(b"first")
    assert b"last" not in job.heard.stdout
    async with bench.hosts.of(bench.access).station() as station:
        Path(f"{station.base}/{job.id}/1/work/go").touch()
    assert isinstance(await running, Completed)
    assert job.heard.stdout == b"first\nlast\n"


async def test_a_script_with_a_timeout_is_stopped_with_all_its_children(any_bench: Bench) -> None:
    mark = f"30{id(any_bench) % 10**8}"
    script = f"trap '' TERM; sleep {mark}1 & (trap '' TERM; sleep {mark}2) & sleep {mark}3; sleep {mark}4"
    job = Job(Work(script=script.encode(), command=("/bin/sh",)), timeout=1.0)
    answer = await any_bench.run(job)
    assert isinstance(answer, TimedOut)
    left = await asyncio.create_subprocess_exec("pgrep", "-f", f"^sleep {mark}", stdout=asyncio.subprocess.PIPE)
    assert (await left.communicate())[0] == b""


async def test_fifty_scripts_at_once_share_a_connection(bench: Bench) -> None:
    dones = await asyncio.gather(*(bench.script(f"sleep 0.2; echo {number}") for number in range(50)))
    assert [done.stdout for done in dones] == [f"{number}\n".encode() for number in range(50)]
    assert bench.connections == 1


async def test_nothing_is_left_behind(bench: Bench, sshd: SshServer) -> None:
    done = await bench.script("echo x")
    await bench.executor.close()
    assert not (sshd.runs / str(done.job.id)).exists()
