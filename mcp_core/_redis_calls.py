"""The common part of layouts in Redis: calls of scripts, names of keys, and streams of messages.

1. What has to happen in one step is one script, which gets every key that it uses. All keys of a
   deployment have its name as their hash tag, so that a cluster keeps them on one node.
2. A stream's entries have the ids `EPOCH-NUMBER`, and the fields `m`, the message, and `t`, the
   time in microseconds. The epoch is the time at which the stream was begun, in milliseconds; the
   number counts from 1. So a reader sees exactly whether it has missed entries, and a stream that
   was lost and begun again has another epoch.
3. A replica that takes over may give others the ids of entries that it has never got. So a reader
   compares the last entry that it has read with what is there under that id.
4. A stream keeps its last 10,000 entries or so, for an hour after the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "APPEND",
    "BEGINNING",
    "RedisCall",
    "StreamPosition",
    "key_prefix",
    "last_entry",
    "probe",
    "unread",
]

# The function `append` of scripts: it appends a message, and returns the new entry's id. If others
# have removed the last entry, or added one, Redis refuses the next id, now and for ever: then
# another, later epoch begins, which is a gap to each reader.
APPEND: Final = """
local function append(stream, message)
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local at = string.format('%d', time[1] * 1000000 + time[2])
  local epoch, number = string.format('%d', now), 0
  if last then epoch, number = string.match(last[1], '^(%d+)%-(%d+)$') end
  local id = epoch .. '-' .. string.format('%d', number + 1)
  local added = redis.pcall('XADD', stream, 'MAXLEN', '~', 10000, id, 'm', message, 't', at)
  if type(added) == 'table' and added.err then
    if string.find(added.err, 'ID specified', 1, true) then
      if tonumber(epoch) < 2 ^ 52 then now = math.max(now, epoch + 1) end
      id = string.format('%d-1', now)
      redis.call('DEL', stream)
    end
    redis.call('XADD', stream, 'MAXLEN', '~', 10000, id, 'm', message, 't', at)
  end
  redis.call('EXPIRE', stream, 3600)
  return id
end
"""

# KEYS: stream.
_LAST_ENTRY: Final = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
return last and last[1] or '0-0'
"""


# KEYS: one that nothing uses. ARGV: commands, each as the number of its words and those; the key
# comes after the first. Returns what an ACL says against them.
_PROBE: Final = """
local refusals, first = {}, 1
while first <= #ARGV do
  local words = {ARGV[first + 1], KEYS[1]}
  for index = 2, ARGV[first] do words[index + 1] = ARGV[first + index] end
  local reply = redis.pcall(unpack(words))
  local said = type(reply) == 'table' and reply.err or ''
  if string.find(said, 'ACL failure') or string.find(said, 'The user executing the script')
  then refusals[#refusals + 1] = ARGV[first + 1] end
  first = first + ARGV[first] + 1
end
return refusals
"""


class RedisCall(NamedTuple):
    """A call of a script, for EVAL, or for EVALSHA with the digest of `script`."""

    script: str
    keys: tuple[str, ...]
    arguments: tuple[str | bytes, ...]


class StreamPosition(NamedTuple):
    """A place in a stream: after the entry with this id. Positions are in order."""

    epoch: int
    number: int

    @classmethod
    def of(cls, id: bytes) -> StreamPosition:
        """Return the place after the entry `id`."""
        epoch, _, number = id.partition(b"-")
        return cls(int(epoch), int(number))

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


# Of a stream that doesn't exist, too.
BEGINNING: Final = StreamPosition(0, 0)


def key_prefix(name: str) -> str:
    """Return what all keys of the deployment `name` begin with.

    Raises:
        ValueError: the name has braces, which end the hash tag, or is empty.
    """
    if not name or "{" in name or "}" in name:
        raise ValueError("the name of a deployment has one or more characters, and no braces")
    return f"mcp:{{{name}}}:"


def probe(key: str, commands: Iterable[tuple[str, ...]]) -> RedisCall:
    """Return the call that returns the names of those commands that an ACL forbids.

    Args:
        key: one of the deployment that nothing uses.
        commands: the name of each, and the words after the key. On a key that isn't there they have
            no effect, but for `DEL` as the last one.
    """
    words = [word for command in commands for word in (str(len(command)), *command)]
    return RedisCall(_PROBE, (key,), tuple(words))


def last_entry(stream: str) -> RedisCall:
    """Return the call that returns the id of a stream's last entry, `0-0` if it has none.

    A last entry before a reader's position shows that the stream was lost. Its next epoch may be
    earlier, because a clock was set, and then the reader would wait for ever.
    """
    return RedisCall(_LAST_ENTRY, (stream,), ())


def unread(
    position: StreamPosition, entries: Iterable[tuple[bytes, bytes]]
) -> tuple[StreamPosition, list[bytes | None]]:
    """Return the place after `entries`, and their messages, with None for each gap.

    Args:
        position: where the reader was.
        entries: what XREAD has returned: the id and the message of each.
    """
    messages: list[bytes | None] = []
    for id, message in entries:
        found = StreamPosition.of(id)
        epoch = found.epoch if position == BEGINNING else position.epoch
        if found != (epoch, position.number + 1):
            messages.append(None)
        messages.append(message)
        position = found
    return position, messages
