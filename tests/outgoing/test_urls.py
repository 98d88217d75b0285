"""URLs that mean the same are written the same."""

from __future__ import annotations

import pytest
from yarl import URL

from headway.executors.fetch.fields import FetchFields
from headway.kinds.fetch import source_of
from headway.kinds.urls import normalised
from headway.outgoing.fields import SecretRef, called

SAME = [
    "http://example.com/a/~b?q=1",
    "HTTP://EXAMPLE.com/a/~b?q=1",
    "http://example.com:80/a/~b?q=1",
    "http://example.com/a/~b?q=1#part",
    "http://example.com/a/%7eb?q=1",
    "http://example.com/a/%7Eb?q=%31",
    "http://example.com/%61/~b?q=1",
    "http://example.com/a/./~b?q=1",
    "http://example.com/a/c/../~b?q=1",
    "http://example.com/../a/~b?q=1",
    "http://example.com:/a/~b?q=1",
]


@pytest.mark.parametrize("url", SAME)
def test_the_same_is_the_same(url: str) -> None:
    assert normalised(url) == "http://example.com/a/~b?q=1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com", "http://example.com/"),
        ("https://example.com:443", "https://EXAMPLE.com/"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%c3%bc"),
        ("http://STRAßE.example/", "http://xn--strae-oqa.example/"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://\uff45xample.com/", "http://example.com/"),
        ("http://example.com?a=b", "http://example.com/?a=b"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        ("http://example.com/a b", "http://example.com/a%20b"),
        ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
    ],
)
def test_two_forms_of_one_url(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    "other",
    [
        "https://example.com/a/~b?q=1",
        "http://example.com:8080/a/~b?q=1",
        "http://example.com/A/~b?q=1",
        "http://example.com/a/~b?q=2",
        "http://example.com/a/~b/?q=1",
        "http://example.com/a/~b",
        "http://example.com/a%2F~b?q=1",
        "http://example.com//a/~b?q=1",
    ],
)
def test_what_differs_stays_different(other: str) -> None:
    assert normalised(other) != normalised(SAME[0])


def test_normalising_twice_changes_nothing() -> None:
    for url in SAME:
        assert normalised(normalised(url)) == normalised(url)


def test_headers_count_in_any_order_and_case() -> None:
    def source(**headers: str | SecretRef) -> str:
        return source_of(FetchFields(url="http://example.com", headers=headers))

    assert source(Accept="a", Via="b") == source(VIA="b", accept="a")
    assert len({source(), source(Accept="a"), source(Accept="b"), source(Accept=SecretRef("a"))}) == 4


def test_a_job_is_called_after_host_and_path() -> None:
    assert called("https://example.com:8080/a/b?c=d#e") == "example.com:8080/a/b"
    assert called("https://example.com") == "example.com/"
    assert len(called("https://example.com/" + "x" * 500)) == 200


@pytest.mark.parametrize("host", ["straße.de", "bücher.example", "ΒΌΛΟΣ.gr", "faß.example", "例え.テスト", "Ǆ.example"])
def test_a_host_is_written_as_requests_are_sent_to_it(host: str) -> None:
    assert normalised(f"http://{host}/") == f"http://{URL(f'http://{host}/').raw_host}/"
