"""Write `mcp_core/trace/judge/_shape_table.py` from the official JSON schemas.

    python -m tests.spec.generate_shapes SCHEMAS

`SCHEMAS` is the folder `schema` of the repository of the
specification. The schemas of the tasks extension are committed: `tests/spec/task_schemas.json`.

Known faults of the official generator are corrected here, by name: it writes `integer` where
`schema.ts`, which counts, has `number`, except for ids and codes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.types._revisions import R_2026_07_28, REVISIONS

Definitions = dict[str, Any]

# Members that are integers by their text as well.
INTEGERS: Final = frozenset({"id", "requestId", "progressToken", "code", "ttlMs", "maxTokens"})
INTEGER_TYPES: Final = frozenset({"RequestId", "ProgressToken"})
# Any JSON. The official schema leaves out null and fractions.
ANY: Final = {"JSONValue": "any", "JSONObject": "object", "JSONArray": "[any]"}
# Requests whose result has another name than they have.
RESULTS: Final = {
    "logging/setLevel": "EmptyResult",
    "ping": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tasks/update": "EmptyResult",
}
# Results that do not belong to one method.
OTHERS: Final = ("InputRequiredResult", "CreateTaskResult", "Error", "Icon")
# Of the tasks extension, whose schema has no requests, and describes the notification by `allOf`.
EXTENSION: Final = {
    ">tasks/get": '{"taskId":string,"_meta"?:RequestMetaObject}',
    ">tasks/cancel": '{"taskId":string,"_meta"?:RequestMetaObject}',
    ">tasks/update": (
        '{"taskId":string,"inputResponses":InputResponses,"_meta"?:RequestMetaObject}'
    ),
    "<tasks/get": "GetTaskResult",
    "<tasks/update": "object",
    "<tasks/cancel": "object",
    ">notifications/tasks": "GetTaskResult",
}
EXTENSION_TYPES: Final = ("GetTaskResult", "CreateTaskResult")


class Writer:
    """The shapes of one revision, as text by name."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.shapes: dict[str, str] = {}

    def add(self, name: str) -> str:
        """Add a definition and all that it names, and return its text in the table."""
        if name in ANY:
            return ANY[name]
        if name not in self.shapes:
            self.shapes[name] = ""  # definitions may be recursive
            self.shapes[name] = self.text_of(self.definitions[name], name)
        return name

    def text_of(self, schema: Any, name: str = "") -> str:
        """Return the text of a schema. `name` names the member or type that it describes."""
        if not isinstance(schema, dict) or not schema:
            return "any"
        if "$ref" in schema:
            return self.add(schema["$ref"].rsplit("/", 1)[-1])
        if "anyOf" in schema:
            return "|".join(dict.fromkeys(self.text_of(each, name) for each in schema["anyOf"]))
        if "allOf" in schema:
            parts = [self.text_of(each, name) for each in schema["allOf"]]
            unions = [each for each in parts if "|{" in each]
            # The language has no parentheses. Beside a union there is only `_meta`.
            return "&".join(unions or [each for each in parts if each != "object"])
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return "|".join(json.dumps(each) for each in schema["enum"])
        return self.text_of_type(schema, name)

    def text_of_type(self, schema: Definitions, name: str) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return "|".join(self.text_of({**schema, "type": each}, name) for each in kind)
        if kind == "object":
            return self.text_of_object(schema)
        if kind == "array":
            return f"[{self.text_of(schema.get('items'))}]"
        if kind in ("integer", "number"):
            is_integer = name in INTEGERS or name in INTEGER_TYPES
            text = "integer" if is_integer and kind == "integer" else "number"
            if "minimum" in schema or "maximum" in schema:
                text += f"({schema.get('minimum', '')},{schema.get('maximum', '')})"
            return text
        if kind == "string" and schema.get("format") == "byte":
            return "base64"
        return str(kind or "any")

    def text_of_object(self, schema: Definitions) -> str:
        required = set(schema.get("required", ())) - {"resultType", "_meta"}
        members = [
            f"{json.dumps(key)}{'' if key in required else '?'}:{self.text_of(value, key)}"
            for key, value in schema.get("properties", {}).items()
            if key not in ("resultType", "jsonrpc")
        ]
        known = {*schema.get("properties", ())}
        members += [f"{json.dumps(key)}:any" for key in sorted(required - known)]
        rest = self.text_of(schema.get("additionalProperties"))
        # A schema inside a message is checked as a schema, not here.
        if rest != "any" and "$schema" not in known:
            members.append(f"*:{rest}")
        return "{" + ",".join(members) + "}" if members else "object"

    def add_methods(self) -> None:
        """Add the params (`>method`) and the result (`<method`) of all methods."""
        for name, schema in self.definitions.items():
            method = schema.get("properties", {}).get("method", {}).get("const")
            if method is None:
                continue
            params = schema["properties"].get("params")
            if params is not None:
                self.shapes[f">{method}"] = self.text_of(params)
            result = RESULTS.get(method, name.removesuffix("Request") + "Result")
            if name.endswith("Request") and result in self.definitions:
                self.shapes[f"<{method}"] = self.add(result)
        for name in OTHERS:
            if name in self.definitions:
                self.add(name)


def table(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the texts of each name by the first revision with it; "" from where there is none."""
    tasks = json.loads((Path(__file__).parent / "task_schemas.json").read_text("utf-8"))
    found: dict[str, list[tuple[str, str]]] = {}
    for revision in REVISIONS:
        document = json.loads((folder / revision / "schema.json").read_text("utf-8"))
        writer = Writer(document.get("$defs") or document["definitions"])
        writer.add_methods()
        shapes = dict(writer.shapes)
        if DIALECTS[revision].tasks == "extension":
            extension = Writer(tasks[R_2026_07_28]["$defs"])
            for name in EXTENSION_TYPES:
                extension.add(name)
            shapes = {**extension.shapes, **shapes, **EXTENSION}
        for name in sorted(found.keys() | shapes.keys()):
            variants = found.setdefault(name, [])
            text = shapes.get(name, "")
            if text != (variants[-1][1] if variants else ""):
                variants.append((revision, text))
    return {name: found[name] for name in sorted(found)}


HEAD: Final = '''\
"""The shapes of params, results and what they contain, by revision.

Generated from the official JSON schemas by `tests/spec/generate_shapes.py`: do not edit.

A key is the name of a type, `>` and a method for its params, or `<` and a method for its result. A
value has the first revision with a shape, and the shape in the language of `_shapes.py`: empty if
the revision has none any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHAPES"]

# fmt: off
SHAPES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
'''


def main(folder: Path) -> None:
    lines = [HEAD]
    for name, variants in table(folder).items():
        lines.append(f"    {name!r}: (\n")
        lines += [f"        ({since!r}, {text!r}),\n" for since, text in variants]
        lines.append("    ),\n")
    lines.append("}\n# fmt: on\n")
    path = Path(__file__).parents[2] / "mcp_core" / "trace" / "judge" / "_shape_table.py"
    path.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
