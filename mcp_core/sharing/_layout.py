"""How workers share changes in Redis: the keys, and the scripts.

1. What has to happen in one step is one script. The Redis server's clock decides what is over.
2. The last 10,000 messages or so are kept, in a stream. What a worker has missed is read from there
   again: a message names what has changed, so reading it twice changes nothing.
3. The stream is begun by the first worker that joins, with an entry without a message: so every
   worker has an epoch, and sees that the stream was lost even if it has heard nothing yet.
4. A stream that is begun again after the server's clock was set back has an earlier epoch, and who
   reads from a later one would wait for ever. The first reader that sees this begins another one,
   whose epoch is later than its own. So does the first one that finds another entry under the id of
   the last one that it has read, as after a failover that has lost entries.
5. Every key here has a time to live: none is left an hour after the last worker.

The keys, where NAME is the deployment and N a worker's number:

- `mcp:{NAME}:bus`, a stream: signed messages.
- `mcp:{NAME}:number:N`, a text: random, known to the worker that has the number.
- `mcp:{NAME}:alive:N`: is there for 10 s after a worker's last heartbeat.
- `mcp:{NAME}:servers`, a sorted set: the names of servers, by the time of their last heartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._redis_calls import APPEND, RedisCall, key_prefix, probe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._store import Position

__all__ = ["BusLayout"]

# The function `last_of`: the last entry's id of a stream, which is begun if there is none.
_LAST: Final = """
local function seconds()
  return tonumber(redis.call('TIME')[1])
end
local function last_of(stream)
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  local id
  if last then
    id = last[1]
  else
    local time = redis.call('TIME')
    redis.call('DEL', stream)  -- an empty stream may refuse the id
    id = string.format('%d-0', time[1] * 1000 + math.floor(time[2] / 1000))
    redis.call('XADD', stream, id, 'm', '')
  end
  redis.call('EXPIRE', stream, 3600)
  return id
end
local function keep(number, alive, owner)
  redis.call('SET', number, owner, 'EX', 3600)
  redis.call('SET', alive, '1', 'EX', 10)
end
"""

# KEYS: number, alive, stream. ARGV: owner. Returns the last entry's id, nil if the number is taken.
_JOIN: Final = (
    _LAST
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local last = last_of(KEYS[3])
keep(KEYS[1], KEYS[2], ARGV[1])
return last
"""
)

# KEYS: number, alive, stream, servers. ARGV: owner, the server's name. Returns the last entry's id
# and the names of all servers; nil if another worker has the number.
_HEARTBEAT: Final = (
    _LAST
    + """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return false end
keep(KEYS[1], KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[4], seconds(), ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', seconds() - 3600)
redis.call('EXPIRE', KEYS[4], 3600)
return {last_of(KEYS[3]), redis.call('ZRANGE', KEYS[4], 0, 100)}
"""
)

# KEYS: number, alive. ARGV: owner.
_LEAVE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1], KEYS[2]) end
"""

# KEYS: stream. ARGV: message. Returns the entry's id.
_PUBLISH: Final = (
    APPEND
    + """
return append(KEYS[1], ARGV[1])
"""
)

# KEYS: stream. ARGV: the epoch and number of a reader that waits in vain, and `lost` or ''. An
# entry after it is what it waits for. `lost`: entries were lost, so it has to be of another epoch.
_OVERTAKE: Final = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not last then return end
local epoch, number = string.match(last[1], '^(%d+)%-(%d+)$')
epoch, number = tonumber(epoch), tonumber(number)
local reader, heard = tonumber(ARGV[1]), tonumber(ARGV[2])
if epoch > reader or (epoch == reader and number >= heard and ARGV[3] == '') then return end
redis.call('XADD', KEYS[1], string.format('%d-0', reader + 1), 'm', '')
redis.call('EXPIRE', KEYS[1], 3600)
"""

# Commands that the scripts use, with arguments that have no effect on a key that isn't there, or
# none that lasts: whether the ACL of Redis allows them is found by trying.
_PROBED: Final = (
    ("GET",),
    ("EXISTS",),
    ("SET", "1", "XX", "EX", "1"),
    ("XREVRANGE", "+", "-", "COUNT", "1"),
    ("XADD", "NOMKSTREAM", "*", "m", ""),
    ("EXPIRE", "1"),
    ("ZADD", "XX", "1", "m"),
    ("ZREMRANGEBYSCORE", "0", "0"),
    ("ZRANGE", "0", "0"),
    ("DEL",),
)


class BusLayout:
    """The keys of one deployment in Redis, and what to call for each method of `SessionStore`.

    Args:
        name: the deployment's name, without braces. Workers of one server have the same.

    Raises:
        ValueError: the name has braces, which end the hash tag, or is empty.
    """

    def __init__(self, name: str) -> None:
        self._prefix = key_prefix(name)
        self.stream = f"{self._prefix}bus"
        self._servers = f"{self._prefix}servers"

    def join(self, number: int, owner: str) -> RedisCall:
        """Return the call that claims a number. It returns the last entry's id, or nil."""
        return RedisCall(_JOIN, (*self._worker_keys(number), self.stream), (owner,))

    def heartbeat(self, number: int, owner: str, server: str) -> RedisCall:
        """Return the call that keeps a number.

        It returns the last entry's id and the names of all servers, or nil if the number is lost.
        """
        keys = (*self._worker_keys(number), self.stream, self._servers)
        return RedisCall(_HEARTBEAT, keys, (owner, server))

    def leave(self, number: int, owner: str) -> RedisCall:
        """Return the call that gives a number back, unless it is lost."""
        return RedisCall(_LEAVE, self._worker_keys(number), (owner,))

    def publish(self, message: bytes) -> RedisCall:
        """Return the call that publishes a message. It returns the entry's id."""
        return RedisCall(_PUBLISH, (self.stream,), (message,))

    def overtake(self, position: Position, *, lost: bool = False) -> RedisCall:
        """Return the call that makes sure that the stream isn't behind a reader.

        `lost` begins another epoch: what the reader has read isn't there any more.
        """
        arguments = (str(position.epoch), str(position.number), "lost" if lost else "")
        return RedisCall(_OVERTAKE, (self.stream,), arguments)

    def alive_keys(self, numbers: Iterable[int]) -> list[str]:
        """Return the keys that are there as long as the workers are alive."""
        return [self._worker_keys(number)[1] for number in numbers]

    def probes(self) -> tuple[RedisCall, list[tuple[str, ...]]]:
        """Return a call that tries the scripts' commands, and the other commands that are used.

        None has an effect. The call returns the names of those that an ACL forbids.
        """
        key = f"{self._prefix}probe"
        commands = [
            ("MGET", key),
            ("XRANGE", key, "-", "-"),
            ("XREVRANGE", key, "+", "+"),
            ("XREAD", "COUNT", "1", "STREAMS", key, "0-0"),
        ]
        return probe(key, _PROBED), commands

    def _worker_keys(self, number: int) -> tuple[str, str]:
        return f"{self._prefix}number:{number}", f"{self._prefix}alive:{number}"
