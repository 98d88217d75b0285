"""The measured app as `headway worker --app headway.bench.served:app` finds it; the store comes from HEADWAY_STORE."""

from __future__ import annotations

import os

from headway.bench.app import Bench

app = Bench(os.environ.get("HEADWAY_STORE", "sqlite://")).app
