"""A real browser, and a person who looks at a service with it."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, Self

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Response, expect

EXECUTABLE = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 45_000
"""Milliseconds: the machine may be busy with other things."""
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
HARMLESS = re.compile(r"status of 4\d\d|status of 503|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|ERR_NETWORK")
"""What the browser says of answers that the page itself deals with."""

WALK = "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
LOOK = "options => axe.run({exclude: ['tbody tr:nth-child(n+5)']}, options).then(found => found.violations)"
"""Of a table, a few rows: the others are made alike."""

expect.set_options(timeout=PATIENCE)


class Visitor:
    """A person with a browser window of their own. Whatever a page complains about, the test fails with."""

    def __init__(self, browser: Browser, url: str, *, width: int = 1440, scheme: Any = "light") -> None:
        self._browser = browser
        self.url = url
        self._view: Any = {"width": width, "height": 900}
        self._scheme = scheme
        self.complaints: list[str] = []
        self.loaded = 0
        """Bytes that the service has told the page."""
        self.context: BrowserContext
        self.page: Page

    async def __aenter__(self) -> Self:
        self.context = await self._browser.new_context(
            base_url=self.url,
            viewport=self._view,
            color_scheme=self._scheme,
            reduced_motion="reduce",
            accept_downloads=True,
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = await self.context.new_page()
        self.page.on("console", self._hear)
        self.page.on("response", self._weigh)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.context.close()
        if kind is None:
            assert not self.complaints, self.complaints

    async def log_in(self, token: str) -> None:
        """By the token, as a program of theirs would; the cookie is the browser's."""
        answer = await self.context.request.post("/api/v1/session", data={"token": token})
        assert answer.status == 201, await answer.text()

    async def go(self, path: str) -> None:
        """To an address, once what it shows has come. A page that is open goes there as a link would lead."""
        if await self.page.locator("#content").count():
            await self.page.evaluate(WALK, path)
            await expect(self.page.locator(f'#content[data-place="{path}"]')).to_have_count(1)
        else:
            await self.page.goto(path)
        await expect(self.page.locator("h1")).to_be_visible()
        await expect(self.page.locator("[aria-busy=true]")).to_have_count(0)

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The API, in the name of whoever is logged in."""
        answer = await self.context.request.fetch(f"/api/v1{path}", method=method, data=body)
        assert answer.ok, f"{answer.status} {await answer.text()}"
        return None if answer.status == 204 else await answer.json()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        """By its label; a field that is needed has a star behind it."""
        named = self.page.get_by_label(re.compile(rf"^{re.escape(label)}( \*)?$"))
        return named.and_(self.page.locator("input:not([type=radio]), textarea"))

    async def serious(self, *rules: str) -> list[str]:
        """What axe finds serious or critical on the page as it is, by all rules or some."""
        only = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": STANDARDS}
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(Axe().axe_script)
        found = await self.page.evaluate(LOOK, {"runOnly": only, "resultTypes": ["violations"]})
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')}"
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]

    async def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(await self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def _weigh(self, response: Response) -> None:
        if "/api/v1/" in response.url:
            self.loaded += int(response.headers.get("content-length", 0))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not HARMLESS.search(message.text):
            self.complaints.append(message.text)
