"""A real server that speaks S3, started by the tests on a free port; what it holds is gone with it."""

from __future__ import annotations

import http.client
import subprocess
import sys
from types import TracebackType
from typing import Self

from headway.bench.server import free_port, wait_until

BUCKET = "headway-tests"


class S3Server:
    """Started on construction, with an empty bucket."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(self._makes_bucket, "the S3 server to answer")
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """What Amazon's tools look for."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _makes_bucket(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"the S3 server ended with status {self._process.returncode}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("PUT", f"/{BUCKET}", headers={"Authorization": "AWS test:test"})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
