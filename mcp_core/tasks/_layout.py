"""How a store outside of the process keeps records: in two parts, and in Redis by these scripts.

1. The result is a part of its own, because it may be large and only `TaskStore.get` returns it.
2. In Redis, what has to happen in one step is one script. All keys of a deployment have its name as
   their hash tag, so that a cluster keeps them on one node, and a script gets every key it uses.
3. The clock of the Redis server decides whether a lease is over: those of the workers differ.

The keys, where NAME is the deployment, OWNER a digest of the owner, and ID the id of a task:

- `mcp:{NAME}:task:OWNER:ID`, a hash: `serial`, `record`, and `result` if there is one. Redis
  removes it some time after its expiry, in case that no worker is left to do it.
- `mcp:{NAME}:tasks:OWNER`, a sorted set: the ids of an owner, by creation time.
- `mcp:{NAME}:tasks`, a sorted set: `OWNER:ID` of all tasks, by the time at which they are stale.
- `mcp:{NAME}:task-usage`, a hash: `tasks:KEY` and `size:KEY`, the number and the bytes of the tasks
  of a quota key, and of all of them together, where KEY is `all`.
- `mcp:{NAME}:task-sizes`, a hash: by `OWNER:ID`, what that task counts for: bytes, a space, KEY. A
  task of an earlier version has no such field, and gets one with its next change.
- `mcp:{NAME}:task-changes`, a channel: the keys of the records that are changed or removed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core.jsonrpc._codec import encode, reader

from ._record import TaskKey, TaskQuota, TaskRecord, decode_record, encode_record

__all__ = ["RedisCall", "RedisLayout", "changed_key", "join_record", "split_record"]

# Seconds that Redis keeps an expired record, for a worker to remove it together with its places in
# the sorted sets. A worker looks every few seconds, so none is left after an hour.
_KEPT_EXPIRED: Final = 3600

# The score in the set of all tasks: `lease`, in seconds from now, begins by the clock of the
# server. It is empty for a task that has ended.
_STALE_AT: Final = """
local function stale_at(expires, lease)
  if lease == '' then return expires end
  local time = redis.call('TIME')
  local over = time[1] + time[2] / 1000000 + lease
  if over < tonumber(expires) then return string.format('%.6f', over) end
  return expires
end
"""

# What quota keys use: `excess` returns the limit in the way of more, `count` replaces what a member
# counts for, by nothing if `size` is empty. It is apart from the record, which Redis may remove.
_USED: Final = """
local function used(usage, field)
  return tonumber(redis.call('HGET', usage, field) or '0')
end
local function excess(usage, key, more, key_bytes, total_bytes)
  if used(usage, 'size:' .. key) + more > tonumber(key_bytes) then return 'key_bytes' end
  if used(usage, 'size:all') + more > tonumber(total_bytes) then return 'total_bytes' end
  return nil
end
local function add(usage, key, tasks, size)
  for _, name in ipairs({key, 'all'}) do
    if redis.call('HINCRBY', usage, 'tasks:' .. name, tasks) <= 0 then
      redis.call('HDEL', usage, 'tasks:' .. name, 'size:' .. name)
    else
      redis.call('HINCRBY', usage, 'size:' .. name, size)
    end
  end
end
local function count(usage, sizes, member, key, size)
  local old = redis.call('HGET', sizes, member)
  if size ~= '' then
    add(usage, key, '1', size)
    redis.call('HSET', sizes, member, size .. ' ' .. key)
  end
  if old then
    local bytes, old_key = string.match(old, '^(%d+) (.*)$')
    add(usage, old_key, '-1', string.format('%d', -bytes))
    if size == '' then redis.call('HDEL', sizes, member) end
  end
end
"""

# KEYS: record, owner, all, usage, sizes. ARGV: id, member, serial, record, result or '', created,
# expires, lease, PEXPIREAT, quota key, size, limits: per key, of all, bytes per key, of all.
# Returns 'created', 'exists', or a limit.
_CREATE: Final = (
    _STALE_AT
    + _USED
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
if used(KEYS[4], 'tasks:' .. ARGV[10]) >= tonumber(ARGV[12]) then return 'per_key' end
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[13]) then return 'total' end
local limit = excess(KEYS[4], ARGV[10], tonumber(ARGV[11]), ARGV[14], ARGV[15])
if limit then return limit end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'record', ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'result', ARGV[5]) end
redis.call('PEXPIREAT', KEYS[1], ARGV[9])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[1])
redis.call('ZADD', KEYS[3], stale_at(ARGV[7], ARGV[8]), ARGV[2])
count(KEYS[4], KEYS[5], ARGV[2], ARGV[10], ARGV[11])
return 'created'
"""
)

# KEYS: record, all, usage, sizes. ARGV: the expected serial, member, serial, record, result or '',
# expires, lease, PEXPIREAT, channel, message, quota key, size, limits or '': bytes per key, of all.
# Returns 1, 0 if the record has another serial or is gone, or a limit.
_CHANGE: Final = (
    _STALE_AT
    + _USED
    + """
if redis.call('HGET', KEYS[1], 'serial') ~= ARGV[1] then return 0 end
if ARGV[13] ~= '' then
  local old = string.match(redis.call('HGET', KEYS[4], ARGV[2]) or '0 ', '^%d+')
  local limit = excess(KEYS[3], ARGV[11], ARGV[12] - old, ARGV[13], ARGV[14])
  if limit then return limit end
end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'record', ARGV[4])
if ARGV[5] == '' then redis.call('HDEL', KEYS[1], 'result')
else redis.call('HSET', KEYS[1], 'result', ARGV[5]) end
redis.call('PEXPIREAT', KEYS[1], ARGV[8])
redis.call('ZADD', KEYS[2], stale_at(ARGV[6], ARGV[7]), ARGV[2])
count(KEYS[3], KEYS[4], ARGV[2], ARGV[11], ARGV[12])
redis.call('PUBLISH', ARGV[9], ARGV[10])
return 1
"""
)

# KEYS: record, owner, all, usage, sizes. ARGV: the expected serial, id, member, channel, message.
# Returns 1, or 0 as above. A record that Redis itself has removed leaves the sets with this too.
_REMOVE: Final = (
    _USED
    + """
local serial = redis.call('HGET', KEYS[1], 'serial')
if serial and serial ~= ARGV[1] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[3])
count(KEYS[4], KEYS[5], ARGV[3], '', '')
if not serial then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
"""
)

# KEYS: owner. ARGV: the id to begin after or '', how many. Returns ids, or nil if it is unknown.
_PAGE: Final = """
local first = 0
if ARGV[1] ~= '' then
  local rank = redis.call('ZRANK', KEYS[1], ARGV[1])
  if not rank then return false end
  first = rank + 1
end
return redis.call('ZRANGE', KEYS[1], first, first + ARGV[2] - 1)
"""

# KEYS: all. ARGV: how many. Returns members: `OWNER:ID`.
_STALE: Final = """
local time = redis.call('TIME')
local now = string.format('%.6f', time[1] + time[2] / 1000000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
"""

_read_key = reader(tuple[str, str])


class RedisCall(NamedTuple):
    """A call of a script, for EVAL, or for EVALSHA with the digest of `script`."""

    script: str
    keys: tuple[str, ...]
    arguments: tuple[str | bytes, ...]


class RedisLayout:
    """The keys of one deployment in Redis, and what to call for each method of `TaskStore`.

    Args:
        name: the name of the deployment, without braces. Workers of one server have the same.

    Raises:
        ValueError: the name has braces, which end the hash tag, or is empty.
    """

    def __init__(self, name: str) -> None:
        if not name or "{" in name or "}" in name:
            raise ValueError("the name of a deployment has one or more characters, and no braces")
        self._prefix = f"mcp:{{{name}}}:"
        self._all = self._prefix + "tasks"
        self._usage = self._prefix + "task-usage"
        self._sizes = self._prefix + "task-sizes"
        self.channel = self._prefix + "task-changes"

    def record_key(self, key: TaskKey) -> str:
        """Return the key of the hash of a task."""
        return self.member_key(_member(key))

    def member_key(self, member: str) -> str:
        """Return the key of the hash of a task that `stale` has returned."""
        return f"{self._prefix}task:{member}"

    def create(self, record: TaskRecord, now: float, *, limits: TaskQuota) -> RedisCall:
        """Return the call that creates a record. It returns "created", "exists", or the limit."""
        key = record.key
        data, result = split_record(record)
        arguments = (
            key.id,
            _member(key),
            str(record.serial),
            data,
            result or b"",
            repr(record.created),
            repr(record.expires),
            _lease(record, now),
            _removal_time(record),
            record.quota_key,
            str(record.size),
            str(limits.per_key),
            str(limits.total),
            str(limits.key_bytes),
            str(limits.total_bytes),
        )
        return RedisCall(_CREATE, self._keys(key), arguments)

    def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord,
        now: float,
        *,
        limits: TaskQuota | None = None,
    ) -> RedisCall:
        """Return the call that replaces a record. It returns 1 if it has, or the limit in its way.

        0 stands for a record that has another serial number, or is gone.
        """
        data, result = split_record(record)
        arguments = (
            str(serial),
            _member(key),
            str(record.serial),
            data,
            result or b"",
            repr(record.expires),
            _lease(record, now),
            _removal_time(record),
            self.channel,
            encode(key),
            record.quota_key,
            str(record.size),
            "" if limits is None else str(limits.key_bytes),
            "" if limits is None else str(limits.total_bytes),
        )
        keys = (self.record_key(key), self._all, self._usage, self._sizes)
        return RedisCall(_CHANGE, keys, arguments)

    def remove(self, key: TaskKey, serial: int) -> RedisCall:
        """Return the call that removes a record. It returns 1 if it has.

        Also call it for a key that a set has and whose hash is gone.
        """
        arguments = (str(serial), key.id, _member(key), self.channel, encode(key))
        return RedisCall(_REMOVE, self._keys(key), arguments)

    def page(self, owner: str, after: str, size: int) -> RedisCall:
        """Return the call that returns the ids of a page, or nil if `after` is unknown."""
        return RedisCall(_PAGE, (self._owner_key(owner),), (after, str(size)))

    def stale(self, size: int) -> RedisCall:
        """Return the call that returns the members of stale tasks, for `member_key`."""
        return RedisCall(_STALE, (self._all,), (str(size),))

    def _keys(self, key: TaskKey) -> tuple[str, ...]:
        owner = self._owner_key(key.owner)
        return self.record_key(key), owner, self._all, self._usage, self._sizes

    def _owner_key(self, owner: str) -> str:
        return f"{self._all}:{_digest(owner)}"


def changed_key(message: bytes) -> TaskKey:
    """Return the key that a message of the channel names.

    Raises:
        InvalidPayload: the message is not one of a store.
    """
    return TaskKey(*_read_key(message))


def split_record(record: TaskRecord) -> tuple[bytes, bytes | None]:
    """Return the encoded record without its result, and the result or None."""
    if record.result is UNSET:
        return encode_record(record), None
    return encode_record(replace(record, result=UNSET)), bytes(record.result)


def join_record(data: bytes, result: bytes | None) -> TaskRecord:
    """Return the record of which `split_record` returned the parts.

    Raises:
        InvalidPayload: the data is no record.
    """
    record = decode_record(data)
    return record if result is None else replace(record, result=Raw(result))


def _digest(owner: str) -> str:
    # Of one length, so that no owner and id together look like another owner with another id.
    return blake2b(owner.encode(), digest_size=16).hexdigest()


def _member(key: TaskKey) -> str:
    return f"{_digest(key.owner)}:{key.id}"


def _lease(record: TaskRecord, now: float) -> str:
    return "" if record.ended else f"{record.lease_until - now:.6f}"


def _removal_time(record: TaskRecord) -> str:
    return str(round((record.expires + _KEPT_EXPIRED) * 1000))
