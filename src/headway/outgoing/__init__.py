"""Requests to other servers, and what keeps them from going where they must not. The one home of aiohttp, which comes
with the extra `server`: modules that need it are imported by those who send requests only."""
