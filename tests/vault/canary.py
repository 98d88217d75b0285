"""A canary: planted as a secret and as credentials, looked for in everything that a process leaves behind."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
from psycopg import sql

from headway.api.routes import all_routes
from headway.vault.redaction import forms
from tests.servers import find_binaries

CANARY = "Tw33ty/bird+&yellow=%feathers 9"
TOKEN = "the-token-of-an-administrator-of-the-tests"
STREAM_PATIENCE = 0.5

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


PLANTED = forms(CANARY.encode())
"""The ways in which planted secrets are written; a test may add others."""


def found_in(text: bytes | str) -> list[str]:
    """The ways in which the canary stands there."""
    whole = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
    flat = whole.translate(None, b"\r\n")
    return [form.decode(errors="replace") for form in PLANTED if form in flat]


class Echo(BaseHTTPRequestHandler):
    """A server that gives back what it was told, secrets and all."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        said = {"headers": dict(self.headers), "body": self.rfile.read(length).decode(errors="replace")}
        seen: list[str] = self.server.seen  # type: ignore[attr-defined]
        seen.append(json.dumps(said))
        bearer = self.headers.get("authorization", "")
        body = json.dumps({**said, "base64": base64.b64encode(bearer.encode()).decode()}).encode()
        self.send_response(500 if self.path == "/broken" else 200)
        self.send_header("content-type", "application/json")
        self.send_header("x-echo", bearer)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echo() -> Iterator[tuple[str, list[str]]]:
    """Its address, and what it has been told."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    seen: list[str] = []
    server.seen = seen  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get_routes(client: httpx.Client, values: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """What every GET route of the table answers, for each value of its parameters: new ones are seen to by
    themselves."""
    for route in all_routes():
        if route.method != "GET":
            continue
        streams = any(answer.content_type == "text/event-stream" for answer in route.answers)
        paths = _paths(route.full_path, values)
        for path in paths[:1] if route.hidden else paths:
            yield path, _stream(client, path) if streams else _get(client, path)


def _paths(template: str, values: dict[str, list[str]]) -> list[str]:
    named = _PARAMETER.search(template)
    if named is None:
        return [template]
    some = values.get(named[1]) or values["job_id"]
    return [path for value in some for path in _paths(template.replace(named[0], value, 1), values)]


def _get(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code < 500 or path == "/readyz", f"{path}: {answer.status_code} {answer.text}"
    return f"{answer.headers} {answer.text}"


def _stream(client: httpx.Client, path: str) -> str:
    shown = ""
    with (
        suppress(httpx.ReadTimeout),
        client.stream("GET", path, timeout=httpx.Timeout(30, read=STREAM_PATIENCE)) as lines,
    ):
        for line in lines.iter_lines():
            shown += line
    return shown


def kept(places: Iterable[tuple[str, bytes | str]]) -> list[tuple[str, list[str]]]:
    """The places where the canary is."""
    return [(place, found) for place, text in places if (found := found_in(text))]


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    """All that lies in a directory: the database, its journal, logs, keys."""
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):
            # A database that is in use removes its journal at times.
            if path.is_file():
                yield str(path), path.read_bytes()


def tables(url: str) -> Iterator[tuple[str, bytes]]:
    """Everything in a PostgreSQL database, as a dump shows it (bytes in hexadecimal), and as it is."""
    with psycopg.connect(url) as connection:
        named = connection.execute(
            "select schemaname, tablename from pg_tables where schemaname = 'headway'"
        ).fetchall()
        for schema, table in named:
            query = sql.SQL("copy {}.{} to stdout").format(sql.Identifier(schema), sql.Identifier(table))
            with connection.cursor() as cursor, cursor.copy(query) as copy:
                yield table, b"".join(bytes(part) for part in copy)
            binary = sql.SQL("copy {}.{} to stdout (format binary)").format(
                sql.Identifier(schema), sql.Identifier(table)
            )
            with connection.cursor() as cursor, cursor.copy(binary) as copy:
                yield f"{table}, binary", b"".join(bytes(part) for part in copy)


def dump(url: str) -> bytes:
    """What pg_dump makes of a database, as a backup would."""
    command = [str(find_binaries() / "pg_dump"), "--dbname", url]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout


class Tap:
    """Stands before a broker and hears every byte in both directions: commands, replies, doorbells, events."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "127.0.0.1", parts.port or 5672)
        self._heard: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        login = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{login}@127.0.0.1:{self._listener.getsockname()[1]}").geturl()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def heard(self) -> bytes:
        """One connection after another, each direction by itself."""
        return b"".join(bytes(line) for line in self._heard)

    def close(self) -> None:
        """Everybody has gone by now."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                for source, sink in ((near, far), (far, near)):
                    line = bytearray()
                    self._heard.append(line)
                    pump = threading.Thread(target=self._pump, args=(source, sink, line), daemon=True)
                    self._threads.append(pump)
                    pump.start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, line: bytearray) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                line += data
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def processes(roots: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """Command lines and environments of processes and their children."""
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
                for name in ("cmdline", "environ"):
                    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                        yield f"{name} of {process.pid}", Path(f"/proc/{process.pid}/{name}").read_bytes()


def reference(prefix: str = "") -> dict[str, Any]:
    return {"secret": "canary", **({"prefix": prefix} if prefix else {})}
