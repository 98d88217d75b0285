"""Real RabbitMQ brokers, started by the tests themselves in temporary directories.

`Rabbit` is a broker that somebody runs. `RabbitServer` is one of our own, which can also be killed, started again and
wiped. Every call blocks. An async test that must go on meanwhile writes `await asyncio.to_thread(server.kill)`.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress

import pika
import pika.exceptions

from headway.bench.broker import PrivateRabbit, answers

__all__ = ["Rabbit", "RabbitServer", "answers"]


class Rabbit:
    """A broker, reached as a user who may declare and delete queues."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.URLParameters(self.url))

    def depth(self, queue: str) -> int:
        """How many messages wait in a queue."""
        with self.connect() as connection:
            found = connection.channel().queue_declare(queue, passive=True)
            return int(found.method.message_count)

    def delete(self, *queues: str) -> None:
        with self.connect() as connection:
            for queue in queues:
                connection.channel().queue_delete(queue)


class RabbitServer(PrivateRabbit, Rabbit):
    """A private broker that can be hurt."""

    def wipe(self) -> None:
        """Kill it and start it again with nothing of what it had."""
        self.kill()
        shutil.rmtree(self._data)
        self.start()

    def pause(self) -> None:
        """It is there and does nothing, as behind a network that loses everything."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _takes_connections(self) -> bool:
        if super()._takes_connections():
            with suppress(pika.exceptions.AMQPError), self.connect():
                return True
        return False
