"""mcp-server-time 2026.10: two tools about time zones, on the low-level server of the official SDK.

Lines that had to change:

1. The list of `Tool(...)` with JSON Schemas, and `call_tool(name, arguments)` with its `match`, are
   a function for each tool. Its signature is the schema, so the arguments need no check.
2. `raise ValueError(text)` is `raise ToolError(text)`. The text of another exception may have
   secrets: the model gets a reference to the log.
3. `[TextContent(text=json.dumps(result.model_dump()))]` is `result`. A model is data: it is sent as
   JSON text and as structured content, with an output schema.

The enum of texts as `name=`, the models of the results and the descriptions with a value in them
stay.
"""

from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from mcp_core import ToolError
from mcp_core.registry import Server
from mcp_core.types import ToolAnnotations

__all__ = ["make_server"]


class TimeTools(str, Enum):  # noqa: UP042 - as there
    GET_CURRENT_TIME = "get_current_time"
    CONVERT_TIME = "convert_time"


class TimeResult(BaseModel):
    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool


class TimeConversionResult(BaseModel):
    source: TimeResult
    target: TimeResult
    time_difference: str


HARMLESS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ToolError(f"there is no time zone {name!r}") from None


def _described(moment: datetime, timezone: str) -> TimeResult:
    return TimeResult(
        timezone=timezone,
        datetime=moment.isoformat(timespec="seconds"),
        day_of_week=f"{moment:%A}",
        is_dst=bool(moment.dst()),
    )


def make_server(local_timezone: str = "UTC") -> Server:
    """Return the server. The descriptions name `local_timezone`, which a model may mean."""
    server = Server("mcp-time")

    @server.tool(name=TimeTools.GET_CURRENT_TIME, annotations=HARMLESS)
    def get_current_time(
        timezone: Annotated[str, f"IANA name of a time zone; here it is {local_timezone}"],
    ) -> TimeResult:
        """Return the time in a time zone."""
        return _described(datetime.now(_zone(timezone)), timezone)

    @server.tool(name=TimeTools.CONVERT_TIME, annotations=HARMLESS)
    def convert_time(
        source_timezone: Annotated[str, f"IANA name; here it is {local_timezone}"],
        time: Annotated[str, "the time, as HH:MM"],
        target_timezone: Annotated[str, f"IANA name; here it is {local_timezone}"],
    ) -> TimeConversionResult:
        """Convert a time of today to another time zone."""
        source, target = _zone(source_timezone), _zone(target_timezone)
        try:
            clock = datetime.strptime(time, "%H:%M").time()  # noqa: DTZ007 - the zone follows
        except ValueError:
            raise ToolError(f"{time!r} isn't a time such as 16:30") from None
        then = datetime.combine(datetime.now(source).date(), clock, source)
        there = then.astimezone(target)
        none = timedelta()
        hours = ((there.utcoffset() or none) - (then.utcoffset() or none)) / timedelta(hours=1)
        return TimeConversionResult(
            source=_described(then, source_timezone),
            target=_described(there, target_timezone),
            time_difference=f"{hours:+}h",
        )

    return server
