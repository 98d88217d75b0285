"""The bus over RabbitMQ, by aio-pika: `amqp://…` or `amqps://…`.

| what       | by way of                                                         | who hears it                        |
|------------|-------------------------------------------------------------------|-------------------------------------|
| doorbells  | durable queue `headway.dispatch.<queue>`, bounded, oldest dropped | one of the workers that can act     |
| calls      | direct exchange `headway.wake`, a queue of the process's own      | the process that has the channel    |
| events     | topic exchange `headway.events`, keys `job.<state>`               | every subscriber, foreign ones too  |
| commands   | durable queue `headway.commands`                                  | one of the processes that serve them|

Everything is declared again on each new connection and each new channel, so that a broker that lost all it had is as
good as one that was restarted. aio-pika's own robust connection is not used: it restores what it remembers, in an order
of its own, and stops where the broker answers otherwise than before.
"""

from __future__ import annotations

import logging

from headway.bus.line import Terms
from headway.bus.rabbit.bus import RabbitBus

# We tell ourselves what goes wrong, once and with what to do; the driver would at each attempt.
logging.getLogger("aiormq.connection").setLevel(logging.CRITICAL)


def from_terms(terms: Terms) -> RabbitBus:
    """The maker behind `amqp://…`."""
    return RabbitBus(terms)
