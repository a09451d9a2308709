"""The JSON Schema of a policy file, as editors want it: with the assumptions of other packages, and short descriptions."""

from __future__ import annotations

from typing import Any

from attrpriv.problem.assumption import OURS, Assumption, installed


def document(schema: dict[str, Any]) -> dict[str, Any]:
    """The whole document, of the schema that the model makes."""
    _add_from_outside(schema)
    for part in (schema, *schema.get("$defs", {}).values()):  # a class's first paragraph; the rest is for programmers
        part["description"] = part.get("description", "").partition("\n\n")[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "attrpriv policy"}


def _add_from_outside(schema: dict[str, Any]) -> None:
    """Assumptions of other packages stand beside ours wherever one of these may stand."""
    installed()
    one, _, several = schema["properties"]["assume"]["anyOf"]
    for kind in sorted(Assumption.kinds.keys() - OURS.keys()):
        own = Assumption.kinds[kind].model_json_schema(mode="validation", ref_template=f"#/$defs/{kind}.{{model}}")
        parts = {kind: own, **{f"{kind}.{name}": part for name, part in own.pop("$defs", {}).items()}}
        schema["$defs"] |= parts
        for place in (one["oneOf"], several["items"]["anyOf"][0]["oneOf"]):
            place.append({"$ref": f"#/$defs/{kind}"})
