"""What the page is made of: small, and from no address that a lock file remembers."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.api.routes.page import PAGE, PLACES
from tests.browser.house import PATIENCE, House
from tests.flow.waiting import block_until

ROOT = Path(__file__).parents[2]
MOST = 400 * 1024


def test_the_first_load_is_small_and_pages_come_when_they_are_looked_at() -> None:
    manifest: dict[str, Any] = json.loads((PAGE / ".vite" / "manifest.json").read_text())
    entry = next(name for name, chunk in manifest.items() if chunk.get("isEntry"))
    first = _with_imports(manifest, entry) | _with_imports(manifest, "src/pages/overview/Overview.tsx")
    weight = sum(len(gzip.compress((PAGE / manifest[name]["file"]).read_bytes())) for name in first)

    assert weight <= MOST, f"{weight:,} bytes of JavaScript"
    lazy = {name for name, chunk in manifest.items() if chunk.get("isDynamicEntry")}
    assert {"src/pages/jobs/Jobs.tsx", "src/pages/submit/Submit.tsx", "src/parts/CodeEditor.tsx"} <= lazy - first


def _with_imports(manifest: dict[str, Any], name: str) -> set[str]:
    found, left = set(), [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += manifest[one].get("imports", [])
    return found


def test_the_lock_file_remembers_no_address() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())

    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
    assert lock["packages"]["node_modules/vite"]["version"] == "8.3.5"
    assert lock["packages"]["node_modules/rolldown"]["version"] == "1.2.15"


def test_the_service_knows_every_address_of_the_page() -> None:
    router = (ROOT / "web" / "src" / "app" / "router.tsx").read_text()
    known = {re.sub(r":\w+", "{id}", path) for path in re.findall(r'path: "([^"*]+)"', router)}

    missing = {f"/{path.lstrip('/')}" for path in known} - set(PLACES)
    # A new schedule has an address like that of one that is there.
    assert missing <= {"/schedules/new"}


def test_a_demo_says_what_it_is(demo: House) -> None:
    block_until(lambda: "a shop that there isn't" in demo.text(), "what the demo says of itself", PATIENCE)


@pytest.mark.parametrize("path", ["/", "/jobs", "/schedules/new", "/jobs/0199c5e2-7a1b-7c3d-9e4f-0123456789ab"])
def test_the_page_runs_scripts_of_its_own_files_only(path: str, demo: House) -> None:
    first, second = (httpx.get(f"{demo.url}{path}", trust_env=False) for _ in range(2))
    policy = first.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert re.search(rf"script-src {re.escape(demo.url.removeprefix('http://'))}/assets/;", policy)
    assert re.findall(r"'unsafe-\w+'", policy) == ["'unsafe-inline'"]
    assert "style-src-attr 'unsafe-inline'" in policy
    assert not re.search(r"<script(?![^>]*src=)", first.text)
    nonce = re.search(r"'nonce-([^']+)'", policy)
    assert nonce is not None
    assert nonce.group(1) in first.text
    assert nonce.group(1) not in second.text
    assert first.headers["cache-control"] == "no-store"


def test_the_page_works_where_a_policy_cannot_name_its_host(demo: House) -> None:
    found = httpx.get(f"{demo.url}/", headers={"Host": "[::1]:8080"}, trust_env=False)

    assert "script-src 'self';" in found.headers["content-security-policy"]


def test_files_of_the_page_are_kept_and_others_are_nowhere(demo: House) -> None:
    page = httpx.get(f"{demo.url}/", trust_env=False).text
    script = re.search(r'src="(/assets/[^"]+\.js)"', page)
    assert script is not None
    found = httpx.get(f"{demo.url}{script.group(1)}", trust_env=False)

    assert found.headers["content-encoding"] == "gzip"
    assert "immutable" in found.headers["cache-control"]
    assert httpx.get(f"{demo.url}/assets/..%2f..%2fcall.py", trust_env=False).status_code == 404
    assert httpx.get(f"{demo.url}/assets/nothing.js", trust_env=False).status_code == 404
