"""Why a request to another server came to nothing. `permanent`: trying again would change nothing."""

from __future__ import annotations

from typing import ClassVar

from headway.model.errors import HeadwayError


class RequestFailed(HeadwayError):
    """A request was not answered as it should have been."""

    permanent: ClassVar[bool] = False


class AddressRefused(RequestFailed):
    """A request would have gone where none may go."""

    permanent = True

    def __init__(self, host: str, address: str, port: int, why: str) -> None:
        place = address if host == address else f"{host} ({address})"
        super().__init__(f"no request is sent to {place}, port {port}: {why}")


class InvalidTarget(RequestFailed):
    """A URL, here or in a redirect, can't be asked for."""

    permanent = True


class TooManyRedirects(RequestFailed):
    """A server sent the request on more often than it was to follow."""

    permanent = True


class ResponseTooLarge(RequestFailed):
    """A response is larger than what is kept of one."""

    permanent = True

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the response is larger than {limit:,} bytes, which is the limit: raise max_size if it is wanted"
        )


class ConnectionFailed(RequestFailed, ConnectionError):
    """A server could not be reached, or broke off."""


class RequestTimedOut(RequestFailed, TimeoutError):
    """A server took too long to accept a connection, or to say anything."""


class BrokenResponse(RequestFailed):
    """A response can't be read: it breaks the rules of HTTP or of its encoding."""


class UnexpectedStatus(RequestFailed):
    """A server answered, but not with a status that counts as success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
