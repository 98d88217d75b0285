"""What every store promises about sealed content, attachments and targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from uuid_utils.compat import uuid7

from headway.model.errors import (
    AttachmentNotFound,
    NameTaken,
    SealBroken,
    SecretNotFound,
    TargetInUse,
    TargetNotFound,
    VaultKeyRetired,
    VersionConflict,
)
from headway.model.filters import JobFilter
from headway.model.sealed import CREDENTIAL, SCRIPT, Attachment, Credential, Enclosed, Shared, VaultKey
from headway.model.states import State
from headway.model.submission import OnConflict
from headway.model.target import Target
from headway.settings import Settings
from headway.store.scripts.schedules import Draft
from headway.vault.envelope import Key
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault
from tests.contract.firing import Firing
from tests.contract.house import House, accepted

PASSWORD = Credential(password="open sesame")


@pytest.fixture
def vault(house: House, tmp_path: Path) -> Vault:
    return vault_of(house, tmp_path)


def vault_of(house: House, directory: Path) -> Vault:
    return Vault(Direct(house.store), KeySource("", Settings(data=str(directory))))


def target(name: str = "db", **more: Any) -> Target:
    return Target(**{"id": uuid7(), "name": name, "host": "db.example", "user": "ops", **more})


# Secrets


async def test_a_secret_is_revealed_as_it_was_set(house: House, vault: Vault) -> None:
    for value in (b"s3cret!", bytes(range(256)), "grüß dich".encode()):
        await vault.set_secret("api-key", value, by="ann")
        assert await vault.reveal("api-key") == value


async def test_what_is_stored_of_a_secret_doesnt_contain_it(house: House, vault: Vault) -> None:
    await vault.set_secret("api-key", b"open sesame", by="ann")
    [sealed] = await house.store.open_secrets(["api-key"])
    assert b"sesame" not in sealed.data + sealed.wrapped


async def test_secrets_are_listed_by_name_without_their_values(house: House, vault: Vault) -> None:
    for name in ("beta", "alpha"):
        await vault.set_secret(name, b"open sesame", note="for tests", by="ann")
    first, second = await house.store.list_secrets()
    assert (first.name, second.name, first.note, first.updated_by) == ("alpha", "beta", "for tests", "ann")
    assert "sesame" not in str(first)
    assert [info.name for info in await house.store.list_secrets("alpha")] == ["beta"]
    assert [info.name for info in await house.store.list_secrets(limit=1)] == ["alpha"]


async def test_a_replaced_secret_leaves_nothing_of_the_old_one(house: House, vault: Vault) -> None:
    await vault.set_secret("api-key", b"the first one", note="kept", by="ann")
    [before] = await house.store.open_secrets(["api-key"])
    house.clock.advance(60)
    info = await vault.set_secret("api-key", b"the second", by="bob")
    assert (info.note, info.updated_by) == ("kept", "bob")
    assert info.updated_at > info.created_at
    assert await house.store.open_attachments([before.id]) == {}
    [key] = await house.store.vault_keys()
    assert key.uses == 1


async def test_a_deleted_secret_is_gone(house: House, vault: Vault) -> None:
    await vault.set_secret("api-key", b"open sesame", by="ann")
    await house.store.delete_secret("api-key")
    with pytest.raises(SecretNotFound, match="headway secrets set api-key"):
        await vault.reveal("api-key")
    with pytest.raises(SecretNotFound):
        await house.store.delete_secret("api-key")
    [key] = await house.store.vault_keys()
    assert key.uses == 0


async def test_a_look_for_secrets_tells_which_are_missing_and_counts_as_no_use(house: House, vault: Vault) -> None:
    await vault.set_secret("api", b"open sesame", by="ann")
    assert await house.store.missing_secrets(["none", "api", "nor"]) == ["none", "nor"]
    await vault.require_secrets(["api"])
    with pytest.raises(SecretNotFound, match="'nor'"):
        await vault.require_secrets(["api", "nor"])
    [info] = await house.store.list_secrets()
    assert info.used_at is None


async def test_a_secret_tells_when_it_was_last_used(house: House, vault: Vault) -> None:
    await vault.set_secret("api-key", b"open sesame", by="ann")
    await vault.reveal("api-key")
    used = house.now
    house.clock.advance(30)
    await vault.reveal("api-key")
    [info] = await house.store.list_secrets()
    assert info.used_at == used
    house.clock.advance(60)
    await vault.reveal("api-key")
    [info] = await house.store.list_secrets()
    assert info.used_at == house.now


async def test_sealed_content_cant_be_opened_in_the_place_of_another(house: House, vault: Vault) -> None:
    await vault.set_secret("mine", b"of no worth", by="ann")
    await vault.set_secret("theirs", b"open sesame", by="bob")
    [theirs] = await house.store.open_secrets(["theirs"])
    await house.store.put_secret("mine", theirs, note=None, by="ann")
    with pytest.raises(SealBroken):
        await vault.reveal("mine")


# Keys


async def test_the_first_key_is_the_current_one_and_stays_it(house: House) -> None:
    first, second = Key.fresh(), Key.fresh()
    assert (await house.store.add_key(VaultKey(id=first.id, proof=first.prove()))).id == first.id
    assert (await house.store.add_key(VaultKey(id=second.id, proof=second.prove()))).id == first.id
    current = await house.store.current_key()
    assert current is not None
    assert first.proves(current.proof)
    assert not second.proves(current.proof)


async def test_nothing_is_stored_under_a_retired_key(house: House, vault: Vault) -> None:
    await vault.set_secret("api-key", b"open sesame", by="ann")
    old, new = await vault.sealing_key(), Key.fresh()
    await house.store.change_key(VaultKey(id=new.id, proof=new.prove()))
    assert await house.store.retire_keys() == []
    assert await house.store.rewrap(lambda sealed: old.rewrap(sealed, new), new.id) == 1
    assert await house.store.retire_keys() == [old.id]
    with pytest.raises(VaultKeyRetired):
        await house.store.put_secret("late", old.seal(uuid7(), "secret late", b"too late"), note=None, by=None)
    late = Attachment(id=uuid7(), role=SCRIPT, name="script", size=1, sealed=old.seal(uuid7(), "attachment", b"x"))
    assert isinstance(await house.refuse(house.job(attachments=(late,))), VaultKeyRetired)
    [sealed] = await house.store.open_secrets(["api-key"])
    assert new.open(sealed, "secret api-key") == b"open sesame"


# Attachments


async def attached(house: House, vault: Vault, content: bytes = b"#!/bin/sh\necho hello\n", **options: Any) -> UUID:
    attachment = await vault.attach(Enclosed(role=SCRIPT, name="script", content=content))
    return await house.submit("deploy", attachments=(attachment,), **options)


async def test_an_attachment_is_stored_with_its_job(house: House, vault: Vault) -> None:
    job_id = await attached(house, vault, b"echo hello")
    [script] = await vault.attachments(job_id)
    assert (script.role, script.name, script.size, script.sealed) == (SCRIPT, "script", 10, None)
    assert await vault.content(script) == b"echo hello"


@pytest.mark.parametrize("policy", list(OnConflict))
async def test_attachments_go_through_every_way_of_submitting(house: House, vault: Vault, policy: OnConflict) -> None:
    job_id = await attached(house, vault, on_conflict=policy)
    assert len(await vault.attachments(job_id)) == 1


async def test_a_refused_job_leaves_no_attachment(house: House, vault: Vault) -> None:
    await house.submit("deploy", on_conflict=OnConflict.REJECT)
    attachment = await vault.attach(Enclosed(role=SCRIPT, name="script", content=b"echo"))
    await house.refuse(house.job("deploy", on_conflict=OnConflict.REJECT, attachments=(attachment,)))
    assert await house.store.uploaded([attachment.id]) == {}


async def test_an_attachment_goes_with_the_last_job_that_uses_it(house: House, vault: Vault) -> None:
    first = await attached(house, vault)
    shared = await vault.attach(Shared(role=SCRIPT, name="script", job=first))
    second = await house.submit("again", attachments=(shared,))
    await house.delete(first)
    [script] = await vault.attachments(second)
    assert await vault.content(script) == b"#!/bin/sh\necho hello\n"
    await house.delete(second)
    assert await house.store.uploaded([script.id]) == {}
    with pytest.raises(AttachmentNotFound):
        await vault.content(script)
    [key] = await house.store.vault_keys()
    assert key.uses == 0


async def test_a_job_that_shares_what_is_gone_is_refused_alone(house: House, vault: Vault) -> None:
    first = await attached(house, vault)
    shared = await vault.attach(Shared(role=SCRIPT, name="script", job=first))
    await house.delete(first)
    refused, accepted = await house.batch(house.job("again", attachments=(shared,)), house.job("other", key="x"))
    assert isinstance(refused, AttachmentNotFound)
    assert not isinstance(accepted, Exception)


async def test_a_repeated_submission_attaches_once(house: House, vault: Vault) -> None:
    attachment = await vault.attach(Enclosed(role=SCRIPT, name="script", content=b"echo"))
    job = house.job("deploy", attachments=(attachment,))
    assert (await house.accept(job)).job_id == (await house.accept(job)).job_id
    assert len(await vault.attachments(job.id)) == 1


async def test_an_upload_waits_a_day_for_a_job(house: House, vault: Vault) -> None:
    used = await vault.upload(Enclosed(role=SCRIPT, name="a.sh", content=b"echo a"))
    left = await vault.upload(Enclosed(role=SCRIPT, name="b.sh", content=b"echo b"))
    taken = await vault.attach(Shared(role=SCRIPT, name="script", attachment=used.id))
    job_id = await house.submit("deploy", attachments=(taken,))
    assert await house.store.prune_uploads(86400) == 0
    house.clock.advance(86401)
    assert await house.store.prune_uploads(86400) == 1
    assert list(await house.store.uploaded([used.id, left.id])) == [used.id]
    [script] = await vault.attachments(job_id)
    assert script.name == "script"


@pytest.mark.parametrize("overlap", ["allow", "wait"])
async def test_a_schedule_shares_its_script_with_its_jobs(house: House, vault: Vault, overlap: str) -> None:
    script = await vault.attach(Enclosed(role=SCRIPT, name="script", content=b"echo hourly"))
    firing = Firing(house)
    schedule_id = await firing.create(template={"attachments": (script,)}, overlap=overlap)
    assert (await firing.get(schedule_id)).template.attachments == (script.bare(),)
    await house.store.pause_schedule(schedule_id, by="ann", reason=None)
    await house.store.resume_schedule(schedule_id, by="ann")
    house.clock.advance(61)
    assert (await house.store.fire()).jobs == 1
    by_hand = accepted(await house.store.run_schedule(schedule_id, house.new_id(), by="ann")).job_id
    fired = [job.id for job in await house.store.find(JobFilter(limit=10))]
    assert len(fired) == 2
    for job_id in fired:
        assert [each.id for each in await vault.attachments(job_id)] == [script.id]
    await house.store.delete_schedule(schedule_id)
    for job_id in set(fired) - {by_hand}:
        await house.delete(job_id)
    assert await vault.content((await vault.attachments(by_hand))[0]) == b"echo hourly"
    await house.delete(by_hand)
    assert await house.store.uploaded([script.id]) == {}


async def test_another_script_of_a_schedule_takes_the_place_of_the_first(house: House, vault: Vault) -> None:
    first, second = [await vault.attach(Enclosed(role=SCRIPT, name="script", content=text)) for text in (b"1", b"2")]
    firing = Firing(house)
    schedule_id = await firing.create(template={"attachments": (first,)})
    before = await firing.get(schedule_id)
    template = msgspec.structs.replace(before.template, attachments=(second,))
    draft = Draft(schedule=before.schedule, template=template)
    await house.store.change_schedule(draft, None, by="ann")
    assert [each.id for each in await vault.attachments(schedule_id)] == [second.id]
    assert list(await house.store.uploaded([first.id, second.id])) == [second.id]


async def test_a_jobs_credential_is_of_no_use_elsewhere(house: House, vault: Vault) -> None:
    """Whoever knows its id may name it in a job of theirs: for another host, or as a script that they may read."""
    mine = Enclosed(role=CREDENTIAL, name="target", content=b'{"password":"open sesame"}', address="db.example:22")
    job_id = await house.submit("deploy", attachments=(await vault.attach(mine),))
    [credential] = await vault.attachments(job_id)
    assert await vault.content(credential, "db.example:22") == b'{"password":"open sesame"}'
    shared = await vault.attach(Shared(role=CREDENTIAL, name="target", attachment=credential.id))
    with pytest.raises(SealBroken):
        await vault.content(shared, "evil.example:22")
    for role in (SCRIPT, "file"):
        disguised = await vault.attach(Shared(role=role, name="script", attachment=credential.id))
        with pytest.raises(SealBroken):
            await vault.content(disguised)


async def test_credentials_have_no_digest(house: House, vault: Vault) -> None:
    attachment = await vault.attach(Enclosed(role=CREDENTIAL, name="target", content=b'{"password":"1234"}'))
    assert attachment.sha256 is None


# Targets


async def test_a_target_is_found_by_name_and_by_id(house: House, vault: Vault) -> None:
    made = await vault.create_target(target(labels={"zone": "a"}), PASSWORD, by="ann")
    assert await house.store.target("db") == await house.store.target(made.id) == made
    assert (made.credential, made.version, made.updated_by) == ("password", 2, "ann")
    assert "sesame" not in str(made)
    found, credential = await vault.destination("db")
    assert (found.labels, credential) == ({"zone": "a"}, PASSWORD)
    assert [each.name for each in await house.store.find_targets()] == ["db"]


async def test_a_private_key_keeps_its_passphrase(house: House, vault: Vault) -> None:
    key = Credential(private_key="-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", passphrase="mellon")
    await vault.create_target(target(), key, by=None)
    assert await vault.destination("db") == ((await house.store.target("db")).target, key)


async def test_two_targets_cant_have_one_name(house: House, vault: Vault) -> None:
    await vault.create_target(target(), None, by=None)
    with pytest.raises(NameTaken):
        await vault.create_target(target(), None, by=None)
    other = await vault.create_target(target("web"), None, by=None)
    with pytest.raises(NameTaken):
        await vault.change_target(target("db", id=other.id), by=None)


HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"


@pytest.mark.parametrize("moved", [{"host": "evil.example"}, {"port": 2222}])
async def test_a_credential_stays_with_host_and_port(house: House, vault: Vault, moved: dict[str, Any]) -> None:
    made = await vault.create_target(target(host_key=HOST_KEY), PASSWORD, by=None)
    same: dict[str, Any] = {"id": made.id, "host_key": HOST_KEY}
    kept = await vault.change_target(target(user="root", **same), by=None)
    assert (kept.credential, kept.target.user) == ("password", "root")
    assert (await vault.destination("db"))[1] == PASSWORD
    lost = await vault.change_target(target(**{**same, **moved}), by=None)
    assert (lost.credential, lost.target.host_key) == (None, None)
    assert (await vault.destination("db"))[1] is None
    back = await vault.change_target(target(**same), by=None)
    assert back.credential is None, "what is gone doesn't come back by itself"
    entered = await vault.change_target(target(**{**same, **moved}), PASSWORD, by=None)
    assert entered.credential == "password"
    assert (await vault.destination("db"))[1] == PASSWORD


async def test_a_credential_cant_be_opened_for_another_host(house: House, vault: Vault) -> None:
    """Even if somebody changes the row behind our back."""
    made = await vault.create_target(target(), PASSWORD, by=None)
    _, sealed = await house.store.open_target("db")
    assert sealed is not None
    from headway.store.scripts.targets import Key as TargetKey

    fresh = await vault.create_target(target("web", host="evil.example"), None, by=None)
    await house.store.delete_target(made.id)
    await house.store.change_target(fresh.target, TargetKey(sealed, "password"), by=None)
    with pytest.raises(SealBroken):
        await vault.destination("web")


async def test_a_change_of_what_was_changed_meanwhile_is_refused(house: House, vault: Vault) -> None:
    made = await vault.create_target(target(), None, by=None)
    await vault.change_target(target(id=made.id, user="root"), version=made.version, by="ann")
    with pytest.raises(VersionConflict, match="target 'db'"):
        await vault.change_target(target(id=made.id), version=made.version, by="bob")


async def test_a_deleted_target_takes_its_credential_along(house: House, vault: Vault) -> None:
    made = await vault.create_target(target(), PASSWORD, by=None)
    await house.store.delete_target(made.id)
    with pytest.raises(TargetNotFound):
        await house.store.target("db")
    with pytest.raises(TargetNotFound):
        await house.store.delete_target(made.id)
    [key] = await house.store.vault_keys()
    assert key.uses == 0


async def test_a_target_is_not_taken_from_jobs_that_have_not_ended(house: House, vault: Vault) -> None:
    """Whether they wait, run, are being cancelled, or have lost their worker."""
    made = await vault.create_target(target(), None, by=None)
    await house.submit("elsewhere", kind="script", payload='{"target":"web"}')
    await house.submit("its own", kind="script", payload='{"target":{"host":"db","user":"ops","host_key":"db"}}')
    await house.submit("no script", kind="http", payload='{"target":"db"}')
    job = await house.submit("it", kind="script", payload='{"target":"db"}', priority=5)

    async def kept() -> None:
        for move in (
            lambda: house.store.delete_target(made.id),
            lambda: house.store.change_target(target("other", id=made.id), by=None),
        ):
            with pytest.raises(TargetInUse, match=str(job)):
                await move()
        await house.store.change_target(target(id=made.id, user="root"), by=None)

    await kept()
    claim = await house.claim_one()
    assert claim.id == job
    await kept()
    assert await house.cancel(job) is State.CANCELLING
    await kept()
    await house.lose(claim)
    assert await house.state(job) is State.CANCELLING
    await kept()
    await house.give_up(await house.claim_one())
    await house.store.delete_target(made.id)


async def test_a_refusal_to_delete_a_target_names_some_of_its_jobs_and_force_overrides_it(
    house: House, vault: Vault
) -> None:
    made = await vault.create_target(target(), None, by=None)
    jobs = [await house.submit("it", kind="script", payload='{"target":"db"}') for _ in range(4)]
    with pytest.raises(TargetInUse, match="and others") as refused:
        await house.store.delete_target(made.id)
    assert [str(job) in str(refused.value) for job in jobs] == [True, True, True, False]
    await house.store.delete_target(made.id, force=True)
    with pytest.raises(TargetNotFound):
        await house.store.delete_target(made.id, force=True)
