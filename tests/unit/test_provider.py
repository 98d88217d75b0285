from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol

import dishka
import pytest

from headway.executors.call.provider import Adapter, Provider, Services
from headway.model.errors import ConfigurationError


class Settings:
    def __init__(self, retries: int = 3) -> None:
        self.retries = retries


class Smtp:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings


class Audit:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings


class Mailer:
    def __init__(self, smtp: Smtp, audit: Audit, settings: Settings | None = None) -> None:
        self.smtp = smtp
        self.audit = audit
        self.settings = settings


class Egg:
    def __init__(self, hen: Hen) -> None: ...


class Hen:
    def __init__(self, egg: Egg) -> None: ...


class Client:
    def __init__(self, host: str) -> None:
        self.host = host


class Report:
    def __init__(self, client: Client) -> None:
        self.client = client


class Untyped:
    def __init__(self, thing) -> None: ...  # type: ignore[no-untyped-def]


class Port(Protocol):
    def go(self) -> None: ...


class Base(abc.ABC):
    @abc.abstractmethod
    def go(self) -> None: ...


class UsesPort:
    def __init__(self, port: Port) -> None:
        self.port = port


class UsesBase:
    def __init__(self, base: Base) -> None:
        self.base = base


class Good(Base):
    def go(self) -> None: ...


async def make(provider: Provider, cls: type) -> Any:
    async with provider.scope() as resolve:
        return await resolve(cls)


async def test_plain_classes_need_no_registration_and_are_made_once_per_job() -> None:
    services = Services()
    mailer = await make(services, Mailer)
    assert mailer.smtp.settings is mailer.audit.settings
    assert mailer.settings is None
    assert (await make(services, Mailer)).smtp is not mailer.smtp


async def test_what_is_provided_takes_the_place_of_what_would_be_made() -> None:
    services = Services()
    services.provide(Settings, Settings(retries=7))
    services.provide(Client, lambda: Client("mail.example"))
    mailer = await make(services, Mailer)
    assert mailer.smtp.settings.retries == 7
    assert mailer.settings.retries == 7
    assert (await make(services, Report)).client.host == "mail.example"


async def test_a_singleton_is_shared_by_all_jobs_even_if_they_ask_for_it_at_once() -> None:
    services = Services()
    made = []

    async def connect(settings: Settings) -> Smtp:
        await asyncio.sleep(0)
        made.append(1)
        return Smtp(settings)

    services.provide(Smtp, connect, singleton=True)
    mailers = await asyncio.gather(*(make(services, Mailer) for _ in range(10)))
    assert len({id(mailer.smtp) for mailer in mailers}) == len(made) == 1
    assert len({id(mailer.audit.settings) for mailer in mailers}) == 10


async def test_factories_that_yield_are_closed_after_the_job_in_reverse_order() -> None:
    services, story = Services(), list[str]()

    def sync_one() -> Iterator[Settings]:
        story.append("open settings")
        yield Settings()
        story.append("close settings")

    @contextlib.asynccontextmanager
    async def async_one(settings: Settings) -> AsyncIterator[Smtp]:
        story.append("open smtp")
        try:
            yield Smtp(settings)
        except ValueError as error:
            story.append(f"smtp saw {error}")
            raise
        finally:
            story.append("close smtp")

    services.provide(Settings, sync_one)
    services.provide(Smtp, async_one)
    await make(services, Smtp)
    assert story == ["open settings", "open smtp", "close smtp", "close settings"]
    with pytest.raises(ValueError, match="no stamp"):
        await fail_in_scope(services)
    assert "smtp saw no stamp" in story


async def fail_in_scope(services: Services) -> None:
    async with services.scope() as resolve:
        await resolve(Smtp)
        raise ValueError("no stamp")


async def test_a_singleton_that_yields_is_closed_when_the_worker_stops_and_made_anew_if_needed() -> None:
    services, story = Services(), list[str]()

    async def connect() -> AsyncIterator[Settings]:
        story.append("open")
        yield Settings()
        story.append("close")

    services.provide(Settings, connect, singleton=True)
    await make(services, Smtp)
    await make(services, Smtp)
    assert story == ["open"]
    await services.close()
    await make(services, Smtp)
    await services.close()
    assert story == ["open", "close"] * 2


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (Egg, "in a circle: Egg → Hen → Egg"),
        (Report, r"Client can't be made.*'host' \(str\); needed by Report → Client.*services.provide\(Client, …\)"),
        (Untyped, r"Untyped can't be made.*'thing' \(Any\)"),
        (UsesPort, r"UsesPort can't be made.*'port' \(Port\)"),
        (UsesBase, r"UsesBase can't be made.*'base' \(Base\)"),
    ],
)
async def test_what_can_not_be_made_is_refused_with_the_way_to_it(cls: type, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        await make(Services(), cls)


async def test_abstract_classes_and_protocols_are_made_as_provided() -> None:
    services = Services()
    services.provide(Base, Good)
    services.provide(Port, Good)
    assert isinstance((await make(services, UsesBase)).base, Good)
    assert isinstance((await make(services, UsesPort)).port, Good)


async def test_a_foreign_container_serves_through_an_adapter() -> None:
    story: list[str] = []

    def settings() -> Iterator[Settings]:
        story.append("open")
        yield Settings(9)
        story.append("close")

    recipes = dishka.Provider(scope=dishka.Scope.REQUEST)
    recipes.provide(settings, provides=Settings)
    recipes.provide(Smtp)
    container = dishka.make_async_container(recipes)
    adapter = Adapter(container, lambda scope, cls: scope.get(cls))
    async with adapter.scope() as resolve:
        smtp = await resolve(Smtp)
        assert smtp.settings.retries == 9
        assert smtp is await resolve(Smtp)
        assert story == ["open"]
    assert story == ["open", "close"]
    assert await make(adapter, Smtp) is not smtp
    await container.close()
