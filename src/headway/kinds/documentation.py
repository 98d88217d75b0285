"""What the bodies of each kind look like, as JSON Schema: for the API's documentation and for forms."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.kinds.body import Common
from headway.kinds.contract import Kind


def body_schema(kind: Kind) -> dict[str, Any]:
    """The schema of a whole body of this kind; it stands by itself."""
    forms = [Common, kind.fields] if kind.fields else [Common]
    references, parts = msgspec.json.schema_components(forms, ref_template="#/$defs/{name}")
    common, *own = (parts.pop(each["$ref"].removeprefix("#/$defs/")) for each in references)
    fields = own[0] if own else {"properties": {}}
    return {
        "title": kind.name,
        "type": "object",
        "properties": {**common["properties"], **fields["properties"], "kind": {"const": kind.name}},
        "required": ["kind", *fields.get("required", ())],
        "additionalProperties": not own,
        "$defs": parts,
    }
