"""The brokers that the tests start must themselves be worthy of trust."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pika
import psutil

from tests.rabbit import RabbitServer, answers
from tests.servers import alive, wait_until


def test_what_was_confirmed_outlives_a_kill_and_not_a_wipe(private_rabbit: RabbitServer) -> None:
    # A broker answers for messages, not for the queue that was declared a moment before: that is on disk by its stop.
    with private_rabbit.connect() as connection:
        connection.channel().queue_declare("mark", durable=True)
    private_rabbit.stop()
    private_rabbit.start()
    with private_rabbit.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "mark", b"", pika.BasicProperties(delivery_mode=2))
    private_rabbit.kill()
    assert not answers(private_rabbit.port)
    private_rabbit.start()
    assert private_rabbit.depth("mark") == 1

    private_rabbit.wipe()
    with private_rabbit.connect() as connection:
        assert connection.channel().queue_declare("mark").method.message_count == 0


def test_a_broker_does_not_outlive_an_owner_that_is_killed() -> None:
    program = (
        "import sys; from tests.rabbit import RabbitServer; server = RabbitServer();"
        "print(server.pid, server._guard.pid, server.directory, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        pid, guard, directory = owner.stdout.readline().split()
        epmd = psutil.Process(int(guard)).children()
        family = [psutil.Process(int(pid)), *epmd]
        assert [process.name() for process in family] == ["beam.smp", "epmd"]
        os.kill(owner.pid, signal.SIGKILL)

    wait_until(lambda: not any(map(alive, family)), "the broker and its epmd to end")
    wait_until(lambda: not Path(directory).exists(), "its files to be removed")
