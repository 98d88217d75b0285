"""The warehouse of the demo's shop: a tiny server on this machine that takes orders and has prices to fetch, so that
jobs of the kinds `http` and `fetch` have somewhere to go. It keeps nothing."""

from __future__ import annotations

import json
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway.outgoing.guard import Endpoint

HOST = "127.0.0.1"
PORT = 18_200
"""Where it is by preference: jobs of an earlier day then still find it."""
TROUBLE = 0.1
"""How often it is too busy to take orders; they are sent again."""
MOST = 64 * 1024
GOODS = ("teapot", "kettle", "cup", "saucer", "strainer", "tray")


class Warehouse:
    """Answers from a thread, from when it is made until it is closed."""

    def __init__(self) -> None:
        try:
            self._server = _Server((HOST, PORT), _Desk)
        except OSError:
            self._server = _Server((HOST, 0), _Desk)
        self.endpoint = Endpoint(HOST, self._server.server_address[1])
        self.url = f"http://{HOST}:{self.endpoint.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="headway-demo", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Desk(BaseHTTPRequestHandler):
    server_version = "warehouse"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """What things cost today."""
        if self.path != "/prices":
            return self._answer(404, {"error": "here are /prices and /orders"})
        return self._answer(200, {"currency": "EUR", "prices": {name: _price() for name in GOODS}})

    def do_POST(self) -> None:
        """An order is taken, or is to come again."""
        self.rfile.read(min(int(self.headers.get("content-length") or 0), MOST))
        if self.path != "/orders":
            return self._answer(404, {"error": "here are /prices and /orders"})
        if random.random() < TROUBLE:
            return self._answer(503, {"error": "stock-taking, come again"})
        return self._answer(200, {"accepted": True, "shelf": f"{random.choice('ABCDEF')}{random.randint(1, 40)}"})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
        """Nobody reads it."""


def _price() -> float:
    return round(random.uniform(2, 90), 2)
