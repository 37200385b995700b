"""How a store outside of the process keeps records: in two parts, and in Redis by these scripts.

1. The result is a part of its own, because it may be large and only `TaskStore.get` returns it.
2. In Redis, what has to happen in one step is one script. All keys of a deployment have its name as
   their hash tag, so that a cluster keeps them on one node, and a script gets every key it uses.
3. The Redis server's clock decides what is over: the workers' clocks differ.

The keys, where NAME is the deployment, OWNER the owner's digest, and ID a task's id:

- `mcp:{NAME}:task:OWNER:ID`, a hash: `serial`, `record`, and `result` if there is one. Redis
  removes it some time after its expiry, in case that no worker is left to do it.
- `mcp:{NAME}:tasks:OWNER`, a sorted set: an owner's ids, by creation time.
- `mcp:{NAME}:tasks`, a sorted set: `OWNER:ID` of all tasks, by their expiry.
- `mcp:{NAME}:task-usage`, a hash: `tasks:KEY` and `size:KEY`, the number and the bytes of the tasks
  of a quota key, and of all of them together, where KEY is `all`.
- `mcp:{NAME}:task-sizes`, a hash: by `OWNER:ID`, what that task counts for: bytes, a space, KEY. A
  task of an earlier version has no such field, and gets one with its next change.
- `mcp:{NAME}:running`, a sorted set: `OWNER:ID` of the tasks that have not ended, by the number of
  their worker; 0 if they have none.
- `mcp:{NAME}:workers`, a hash: the workers' numbers by name, and the last number by "".
- `mcp:{NAME}:leases`, a sorted set: the workers, by the time at which their lease is over.
- `mcp:{NAME}:task-changes`, a channel: the keys of the records that are changed or removed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core._redis_calls import RedisCall, key_prefix
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, check_object, encode, reader

from ._record import TaskKey, TaskQuota, TaskRecord, decode_record, encode_record

__all__ = ["RedisLayout", "changed_key", "join_record", "split_record"]

# Seconds that Redis keeps an expired record, for a worker to remove it together with its places in
# the sorted sets. A worker looks every few seconds, so none is left after an hour.
_KEPT_EXPIRED: Final = 3600

# Functions of the scripts below. `hold` notes which worker runs a task: by its number in the set of
# running tasks, 0 for none. `worker` is '-' for a task that has ended.
_HOLD: Final = """
local function number_of(workers, worker)
  if worker == '' then return 0 end
  local number = redis.call('HGET', workers, worker)
  if number then return number end
  number = redis.call('HINCRBY', workers, '', 1)
  redis.call('HSET', workers, worker, number)
  return number
end
local function hold(running, workers, member, worker)
  if worker == '-' then redis.call('ZREM', running, member)
  else redis.call('ZADD', running, number_of(workers, worker), member) end
end
local function now()
  local time = redis.call('TIME')
  return time[1] + time[2] / 1000000
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

# KEYS: record, owner, all, running, usage, sizes, workers. ARGV: id, member, serial, record, result
# or '', created, expires, worker or '-', PEXPIREAT, quota key, size, limits: per key, of all, bytes
# per key, of all. Returns 'created', 'exists', or a limit.
_CREATE: Final = (
    _HOLD
    + _USED
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
if used(KEYS[5], 'tasks:' .. ARGV[10]) >= tonumber(ARGV[12]) then return 'per_key' end
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[13]) then return 'total' end
local limit = excess(KEYS[5], ARGV[10], tonumber(ARGV[11]), ARGV[14], ARGV[15])
if limit then return limit end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'record', ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'result', ARGV[5]) end
redis.call('PEXPIREAT', KEYS[1], ARGV[9])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[7], ARGV[2])
hold(KEYS[4], KEYS[7], ARGV[2], ARGV[8])
count(KEYS[5], KEYS[6], ARGV[2], ARGV[10], ARGV[11])
return 'created'
"""
)

# KEYS: record, all, running, workers, usage, sizes. ARGV: the expected serial, member, serial,
# record, result or '', expires, worker or '-', PEXPIREAT, channel, message, quota key, size, limits
# or '': bytes per key, of all. Returns 1, 0 if the record has another serial or is gone, or which
# limit is in the way.
_CHANGE: Final = (
    _HOLD
    + _USED
    + """
if redis.call('HGET', KEYS[1], 'serial') ~= ARGV[1] then return 0 end
if ARGV[13] ~= '' then
  local old = string.match(redis.call('HGET', KEYS[6], ARGV[2]) or '0 ', '^%d+')
  local limit = excess(KEYS[5], ARGV[11], ARGV[12] - old, ARGV[13], ARGV[14])
  if limit then return limit end
end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'record', ARGV[4])
if ARGV[5] == '' then redis.call('HDEL', KEYS[1], 'result')
else redis.call('HSET', KEYS[1], 'result', ARGV[5]) end
redis.call('PEXPIREAT', KEYS[1], ARGV[8])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[2])
hold(KEYS[3], KEYS[4], ARGV[2], ARGV[7])
count(KEYS[5], KEYS[6], ARGV[2], ARGV[11], ARGV[12])
redis.call('PUBLISH', ARGV[9], ARGV[10])
return 1
"""
)

# KEYS: record, owner, all, running, usage, sizes. ARGV: the expected serial, id, member, channel,
# message. Returns 1, or 0 as above. A record that Redis itself has removed leaves the sets with
# this too.
_REMOVE: Final = (
    _USED
    + """
local serial = redis.call('HGET', KEYS[1], 'serial')
if serial and serial ~= ARGV[1] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('ZREM', KEYS[4], ARGV[3])
count(KEYS[5], KEYS[6], ARGV[3], '', '')
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
_EXPIRED: Final = (
    _HOLD
    + """
return redis.call(
  'ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.6f', now()), 'LIMIT', 0, ARGV[1]
)
"""
)

# KEYS: leases, workers. ARGV: worker, seconds.
_RENEW: Final = (
    _HOLD
    + """
number_of(KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[1], string.format('%.6f', now() + ARGV[2]), ARGV[1])
"""
)

# KEYS: running, leases, workers. ARGV: how many. Returns members: `OWNER:ID`. A lost worker without
# a task is forgotten.
_LOST: Final = (
    _HOLD
    + """
local found = redis.call('ZRANGEBYSCORE', KEYS[1], 0, 0, 'LIMIT', 0, ARGV[1])
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.6f', now())))
do
  local left = ARGV[1] - #found
  local number = redis.call('HGET', KEYS[3], worker)
  if left > 0 then
    local held = redis.call('ZRANGEBYSCORE', KEYS[1], number, number, 'LIMIT', 0, left)
    if #held == 0 then
      redis.call('ZREM', KEYS[2], worker)
      redis.call('HDEL', KEYS[3], worker)
    end
    for _, member in ipairs(held) do found[#found + 1] = member end
  end
end
return found
"""
)

_read_key = reader(tuple[str, str])


class RedisLayout:
    """The keys of one deployment in Redis, and what to call for each method of `TaskStore`.

    Args:
        name: the deployment's name, without braces. Workers of one server have the same.

    Raises:
        ValueError: the name has braces, which end the hash tag, or is empty.
    """

    def __init__(self, name: str) -> None:
        self._prefix = key_prefix(name)
        self._all = self._prefix + "tasks"
        self._usage = self._prefix + "task-usage"
        self._sizes = self._prefix + "task-sizes"
        self._running = self._prefix + "running"
        self._workers = self._prefix + "workers"
        self._leases = self._prefix + "leases"
        self.channel = self._prefix + "task-changes"

    def record_key(self, key: TaskKey) -> str:
        """Return the key of a task's hash."""
        return self.member_key(_member(key))

    def member_key(self, member: str) -> str:
        """Return the key of the hash of a task that `expired` or `lost` has returned."""
        return f"{self._prefix}task:{member}"

    def create(self, record: TaskRecord, *, limits: TaskQuota) -> RedisCall:
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
            _worker(record),
            _removal_time(record),
            record.quota_key,
            str(record.size),
            str(limits.per_key),
            str(limits.total),
            str(limits.key_bytes),
            str(limits.total_bytes),
        )
        return RedisCall(_CREATE, (*self._keys(key), self._workers), arguments)

    def change(
        self, key: TaskKey, serial: int, record: TaskRecord, *, limits: TaskQuota | None = None
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
            _worker(record),
            _removal_time(record),
            self.channel,
            encode(key),
            record.quota_key,
            str(record.size),
            "" if limits is None else str(limits.key_bytes),
            "" if limits is None else str(limits.total_bytes),
        )
        keys = (
            self.record_key(key),
            self._all,
            self._running,
            self._workers,
            self._usage,
            self._sizes,
        )
        return RedisCall(_CHANGE, keys, arguments)

    def remove(self, key: TaskKey, serial: int) -> RedisCall:
        """Return the call that removes a record. It returns 1 if it has.

        Also call it for a key that a set has and whose hash is gone.
        """
        arguments = (str(serial), key.id, _member(key), self.channel, encode(key))
        return RedisCall(_REMOVE, self._keys(key), arguments)

    def page(self, owner: str, after: str, size: int) -> RedisCall:
        """Return the call that returns a page's ids, or nil if `after` is unknown."""
        return RedisCall(_PAGE, (self._owner_key(owner),), (after, str(size)))

    def expired(self, size: int) -> RedisCall:
        """Return the call that returns the members of expired tasks, for `member_key`."""
        return RedisCall(_EXPIRED, (self._all,), (str(size),))

    def renew_lease(self, worker: str, seconds: float) -> RedisCall:
        """Return the call that sets for how long a worker is believed to be alive."""
        return RedisCall(_RENEW, (self._leases, self._workers), (worker, repr(seconds)))

    def lost(self, size: int) -> RedisCall:
        """Return the call that returns the members of tasks without a worker that is alive."""
        keys = self._running, self._leases, self._workers
        return RedisCall(_LOST, keys, (str(size),))

    def _keys(self, key: TaskKey) -> tuple[str, ...]:
        owner = self._owner_key(key.owner)
        return self.record_key(key), owner, self._all, self._running, self._usage, self._sizes

    def _owner_key(self, owner: str) -> str:
        return f"{self._all}:{_digest(owner)}"


def changed_key(message: bytes) -> TaskKey:
    """Return the key that a message of the channel names.

    Raises:
        InvalidPayload: the message isn't one of a store.
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
        InvalidPayload: the data isn't a record, or the result isn't its JSON object.
    """
    record = decode_record(data)
    if result is None:
        return record
    try:
        check_object(result)  # it is sent to clients as it is
    except ValueError as exc:
        raise InvalidPayload(f"the result is {exc}") from None
    if record.status != "completed":
        raise InvalidPayload(f"a task that is {record.status} has a result")
    return replace(record, result=Raw(result))


def _digest(owner: str) -> str:
    # Of one length, so that no owner and id together look like another owner with another id.
    return blake2b(owner.encode(), digest_size=16).hexdigest()


def _member(key: TaskKey) -> str:
    return f"{_digest(key.owner)}:{key.id}"


def _worker(record: TaskRecord) -> str:
    return "-" if record.ended else record.worker


def _removal_time(record: TaskRecord) -> str:
    return str(round((record.expires + _KEPT_EXPIRED) * 1000))
