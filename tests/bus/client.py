"""A foreign client: pika, blocking, with nothing of Headway in it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Self
from uuid import uuid4

import pika

from tests.rabbit import Rabbit

QUEUE = "headway.commands"
PERSISTENT = 2


class Client:
    """Publishes commands and reads replies from a queue of its own."""

    def __init__(self, rabbit: Rabbit) -> None:
        self._connection = rabbit.connect()
        self.channel = self._connection.channel()
        self.channel.confirm_delivery()
        self.channel.queue_declare(QUEUE, durable=True)
        self.reply_to: str = self.channel.queue_declare("", exclusive=True).method.queue
        self.replies: dict[str | None, list[Any]] = {}
        self.channel.basic_consume(self.reply_to, self._replied, auto_ack=True)

    def tell(self, body: Mapping[str, object] | bytes, **properties: object) -> None:
        """Send a command, and return when the broker has it."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = pika.BasicProperties(**{"delivery_mode": PERSISTENT, **properties})
        self.channel.basic_publish("", QUEUE, raw, given, mandatory=True)

    def ask(self, body: Mapping[str, object] | bytes, **properties: object) -> Any:
        """Send a command and wait for its reply."""
        mine = str(properties.pop("correlation_id", uuid4()))
        self.tell(body, **{"reply_to": self.reply_to, **properties}, correlation_id=mine)
        return self.reply(mine)

    def reply(self, correlation_id: str | None, patience: float = 45.0) -> Any:
        ends = time.monotonic() + patience
        while not self.replies.get(correlation_id):
            assert time.monotonic() < ends, f"no reply to {correlation_id} within {patience:g} s"
            self._connection.process_data_events(0.05)
        return self.replies[correlation_id].pop(0)

    def close(self) -> None:
        if self._connection.is_open:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replied(self, _channel: object, _method: object, properties: pika.BasicProperties, body: bytes) -> None:
        self.replies.setdefault(properties.correlation_id, []).append(json.loads(body))
