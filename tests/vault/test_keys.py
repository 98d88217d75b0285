"""The lock, and where its key comes from."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from headway.model.errors import ConfigurationError, SealBroken, VaultLocked
from headway.settings import Settings
from headway.store.sqlite import sqlite_store
from headway.vault import envelope
from headway.vault.envelope import Key
from headway.vault.keys import FILE, Keys, decode, encode
from headway.vault.selftest import check, check_lock
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault

HERE = UUID(int=7)


def test_sealed_content_opens_in_its_place_with_its_key_and_nowhere_else() -> None:
    key = Key.fresh()
    sealed = key.seal(HERE, "secret a", b"open sesame")
    assert key.open(sealed, "secret a") == b"open sesame"
    assert key.seal(HERE, "secret a", b"open sesame").data != sealed.data
    for changed in ({"id": UUID(int=8)}, {"data": sealed.data[:-1] + b"x"}, {"wrapped": b"short"}, {"data": b""}):
        with pytest.raises(SealBroken):
            key.open(msgspec.structs.replace(sealed, **changed), "secret a")
    with pytest.raises(SealBroken):
        key.open(sealed, "secret b")
    with pytest.raises(SealBroken):
        Key.fresh().open(sealed, "secret a")


def test_content_under_another_key_is_the_same_content() -> None:
    old, new = Key.fresh(), Key.fresh()
    sealed = old.rewrap(old.seal(HERE, "a", b"open sesame"), new)
    assert (sealed.key_id, new.open(sealed, "a")) == (new.id, b"open sesame")
    with pytest.raises(SealBroken):
        old.open(sealed, "a")


def test_a_key_is_not_shown_and_its_name_tells_nothing_of_it() -> None:
    key = Key.fresh()
    assert key.secret.hex() not in repr(key) + key.id
    assert repr(key) == f"Key({key.id})"
    assert Key(key.secret).id == key.id


def test_keys_are_read_from_the_variable_in_every_spelling(tmp_path: Path) -> None:
    key, old = Key.fresh(), Key.fresh()
    keys = Keys(f"{encode(key)}, {old.secret.hex()}", tmp_path)
    assert list(keys.ring()) == [key.id, old.id]
    assert not keys.in_file
    assert decode(encode(key).rstrip("="), "here").id == key.id


@pytest.mark.parametrize("wrong", ["short", "x" * 44, "zz" * 32, "open sesame"])
def test_what_is_no_key_is_refused_without_being_told(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="headway secrets key") as refused:
        Keys(wrong, tmp_path).ring()
    assert wrong not in str(refused.value)


def test_a_key_file_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    first = Keys(None, directory).create()
    assert Keys(None, directory).create().id == first.id
    file = directory / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in directory.iterdir()] == [FILE]


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    keys = Keys(None, tmp_path)
    keys.create()
    (tmp_path / FILE).chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        keys.ring(again=True)


def test_a_key_that_has_come_since_is_found(tmp_path: Path) -> None:
    here, there = Keys(None, tmp_path), Keys(None, tmp_path)
    old, new = here.create(), Key.fresh()
    there.replace([new, old])
    assert here.get(new.id) is not None
    assert here.get("unknown") is None


def test_a_lock_that_doesnt_lock_fails_its_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    check_lock()
    monkeypatch.setattr(envelope, "_encrypt", lambda lock, content, bound: b"n" * 12 + content)
    monkeypatch.setattr(envelope, "_decrypt", lambda lock, data, bound, content_id: data[12:])
    with pytest.raises(ConfigurationError, match="self-test"):
        check_lock()


async def test_a_process_without_the_key_says_which_one_it_lacks(tmp_path: Path) -> None:
    store = sqlite_store(":memory:")
    await store.open()
    rich = Vault(Direct(store), KeySource("", Settings(data=str(tmp_path / "rich"))))
    poor = Vault(Direct(store), KeySource("", Settings(data=str(tmp_path / "poor"))))
    assert await check(rich) is None
    await rich.set_secret("api-key", b"open sesame", by=None)
    key_id = await check(rich)
    assert key_id is not None
    for act in (check(poor), poor.reveal("api-key"), poor.set_secret("other", b"value", by=None)):
        with pytest.raises(VaultLocked, match=f"{key_id}.*holds no key.*HEADWAY_SECRET_KEY"):
            await act
    assert not (tmp_path / "poor").exists(), "a second key would only make it worse"
    await store.close()
