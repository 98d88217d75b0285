"""Which times are taken in, before anything is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from uuid_utils.compat import uuid7

from headway import Headway
from headway.components.schedule import schedule_jobs
from headway.model.errors import InvalidJob
from headway.model.filters import JobFilter
from headway.model.submission import Edit

FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(-timedelta(hours=14)))
BEYOND = [FAR, datetime(1, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC), datetime(1970, 12, 31, tzinfo=UTC)]


@pytest.mark.parametrize("moment", BEYOND)
async def test_a_library_call_with_a_time_that_cannot_be_kept_is_refused(moment: datetime) -> None:
    app = Headway("sqlite://")

    @app.job
    def nothing() -> None: ...

    for option in ("run_at", "expires"):
        with pytest.raises(InvalidJob, match="from 1971 to 2998") as refused:
            await nothing.options(**{option: moment}).asubmit()  # type: ignore[arg-type]
        assert refused.value.field == option
    with pytest.raises(InvalidJob, match="run_at"):
        Edit(run_at=moment)
    with pytest.raises(InvalidJob, match="to must be"):
        JobFilter(until=moment)
    with pytest.raises(InvalidJob, match="run_at"):
        await app.client.call(lambda store: schedule_jobs(store, [uuid7()], moment, by=None))
    await app.aclose()
