"""How a store outside of the process keeps records: in Redis, by these scripts.

1. The result is a part of its own, because it may be large and only `TaskStore.get` returns it.
2. What has to happen in one step is one script. All keys of a deployment have its name as their
   hash tag, so that a cluster keeps them on one node, and a script gets every key that it uses.
3. The Redis server's clock decides what is over: the workers' clocks differ. It doesn't decide
   which worker is lost, since a clock may be set, and a server may be stopped: see `_leases`.
4. Records and messages are bytes that a caller has encoded and signed. What is beside them, such
   as the sets, isn't signed: it says where to look, and how much is used, and nothing of what is
   found there is believed.

The keys, where NAME is the deployment, OWNER the owner's digest, and ID a task's id:

- `mcp:{NAME}:task:OWNER:ID`, a hash: `serial`, `record`, and `result` if there is one. Redis
  removes it some time after its expiry, in case that no worker is left to do it.
- `mcp:{NAME}:tasks:OWNER`, a sorted set: an owner's ids, by creation time.
- `mcp:{NAME}:tasks`, a sorted set: `OWNER:ID` of all tasks, by their expiry.
- `mcp:{NAME}:task-usage`, a hash: `tasks:KEY` and `size:KEY`, the number and the bytes of the tasks
  of a quota key, and of all of them together, where KEY is `all`.
- `mcp:{NAME}:task-sizes`, a hash: by `OWNER:ID`, what that task counts for: bytes, a space, KEY.
- `mcp:{NAME}:running`, a sorted set: `OWNER:ID` of the tasks that have not ended, by the number of
  their worker; 0 if they have none.
- `mcp:{NAME}:workers`, a hash: by a worker's name its number, its last renewal, and the seconds of
  its lease; by "" the last number that a worker or a renewal got.
- `mcp:{NAME}:task-keys`: what the keys that sign are recognized by.
- `mcp:{NAME}:task-changes`, a stream: the tasks that are changed or removed.
"""

from __future__ import annotations

from hashlib import blake2b, sha1
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core._redis_calls import APPEND, RedisCall, key_prefix, probe

from ._leases import WorkerLease

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._record import TaskKey, TaskQuota, TaskRecord

__all__ = [
    "RedisLayout",
    "Removal",
    "StoredLease",
    "StoredRecord",
    "member_of",
    "stored_leases",
]

# Seconds that Redis keeps an expired record, for a worker to remove it together with its places in
# the sorted sets. A worker looks every few seconds, so none is left after an hour.
_KEPT_EXPIRED: Final = 3600

# Functions of the scripts below. `hold` notes which worker runs a task: by its number in the set of
# running tasks, 0 for none. `worker` is '-' for a task that has ended.
_HOLD: Final = """
local function number_of(workers, worker)
  if worker == '' then return 0 end
  local known = redis.call('HGET', workers, worker)
  local number = known and string.match(known, '^%d+')
  if number then return number end
  number = redis.call('HINCRBY', workers, '', 1)
  redis.call('HSET', workers, worker, number .. ' 0 0')
  return number
end
local function hold(running, workers, member, worker)
  if worker == '-' then redis.call('ZREM', running, member)
  else redis.call('ZADD', running, number_of(workers, worker), member) end
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

# KEYS: record, all, running, workers, usage, sizes, changes. ARGV: the expected serial, member,
# serial, record, result or '', expires, worker or '-', PEXPIREAT, message, quota key, size, limits
# or '': bytes per key, of all. Returns 1, 0 if the record has another serial or is gone, or which
# limit is in the way. It appends the message first: if that fails, nothing is changed.
_CHANGE: Final = (
    _HOLD
    + _USED
    + APPEND
    + """
if redis.call('HGET', KEYS[1], 'serial') ~= ARGV[1] then return 0 end
if ARGV[12] ~= '' then
  local old = string.match(redis.call('HGET', KEYS[6], ARGV[2]) or '0 ', '^%d+')
  local limit = excess(KEYS[5], ARGV[10], ARGV[11] - old, ARGV[12], ARGV[13])
  if limit then return limit end
end
append(KEYS[7], ARGV[9])
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'record', ARGV[4])
if ARGV[5] == '' then redis.call('HDEL', KEYS[1], 'result')
else redis.call('HSET', KEYS[1], 'result', ARGV[5]) end
redis.call('PEXPIREAT', KEYS[1], ARGV[8])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[2])
hold(KEYS[3], KEYS[4], ARGV[2], ARGV[7])
count(KEYS[5], KEYS[6], ARGV[2], ARGV[10], ARGV[11])
return 1
"""
)

_FORGET: Final = (
    _USED
    + """
local function forget(record, owner, id, member)
  redis.call('ZREM', owner, id)
  redis.call('ZREM', KEYS[1], member)
  redis.call('ZREM', KEYS[2], member)
  count(KEYS[3], KEYS[4], member, '', '')
  redis.call('DEL', record)
end
"""
)

# KEYS: all, running, usage, sizes, changes, and for each record: record, owner. ARGV for each:
# the expected serial, id, member, message. Returns for each 1, or 0 as above.
_REMOVE: Final = (
    _FORGET
    + APPEND
    + """
local removed = {}
for i = 1, (#KEYS - 5) / 2 do
  local record, owner = KEYS[4 + 2 * i], KEYS[5 + 2 * i]
  local serial, id, member, message = unpack(ARGV, 4 * i - 3, 4 * i)
  removed[i] = 0
  if redis.call('HGET', record, 'serial') == serial then
    append(KEYS[5], message)
    forget(record, owner, id, member)
    removed[i] = 1
  end
end
return removed
"""
)

# KEYS: all, running, usage, sizes, and for each record: record, owner. ARGV for each: the SHA-1 of
# what the record was when it was read, '' if there was none; id, member.
_DISCARD: Final = (
    _FORGET
    + """
for i = 1, (#KEYS - 4) / 2 do
  local record, owner = KEYS[3 + 2 * i], KEYS[4 + 2 * i]
  local expected, id, member = unpack(ARGV, 3 * i - 2, 3 * i)
  local data = redis.pcall('HGET', record, 'record')
  local digest = ''
  if type(data) == 'string' and data ~= '' then digest = redis.sha1hex(data) end
  if digest == expected then forget(record, owner, id, member) end
end
"""
)

# KEYS: records. ARGV: 'result', or '' to leave results out. Returns for each: serial, record,
# result; all nil if there is none, and empty ones for a key of another type.
_READ: Final = """
local found = {}
for i, key in ipairs(KEYS) do
  local values
  if ARGV[1] == '' then values = redis.pcall('HMGET', key, 'serial', 'record')
  else values = redis.pcall('HMGET', key, 'serial', 'record', 'result') end
  if values.err then values = {'', ''} end
  found[i] = values
end
return found
"""

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
_EXPIRED: Final = """
local time = redis.call('TIME')
local now = string.format('%.6f', time[1] + time[2] / 1000000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
"""

# KEYS: workers. ARGV: worker, seconds.
_RENEW: Final = (
    _HOLD
    + """
local number = number_of(KEYS[1], ARGV[1])
local renewal = redis.call('HINCRBY', KEYS[1], '', 1)
redis.call('HSET', KEYS[1], ARGV[1], number .. ' ' .. renewal .. ' ' .. ARGV[2])
"""
)

# KEYS: workers. Returns the hash.
_LEASES: Final = "return redis.call('HGETALL', KEYS[1])"

# KEYS: running, workers. ARGV: how many, and for each lost worker: name, number, its field in the
# hash. Returns members: `OWNER:ID`. A lost worker without a task is forgotten, unless it has
# renewed its lease meanwhile.
_LOST: Final = """
local found = redis.call('ZRANGEBYSCORE', KEYS[1], 0, 0, 'LIMIT', 0, ARGV[1])
for i = 2, #ARGV, 3 do
  local worker, number, lease = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local left = ARGV[1] - #found
  if left > 0 then
    local held = redis.call('ZRANGEBYSCORE', KEYS[1], number, number, 'LIMIT', 0, left)
    if #held == 0 and redis.call('HGET', KEYS[2], worker) == lease then
      redis.call('HDEL', KEYS[2], worker)
    end
    for _, member in ipairs(held) do found[#found + 1] = member end
  end
end
return found
"""

# KEYS: running, workers. ARGV for each record: member, worker or '-'.
_PLACE: Final = (
    _HOLD
    + """
for i = 1, #ARGV, 2 do hold(KEYS[1], KEYS[2], ARGV[i], ARGV[i + 1]) end
"""
)

# KEYS: task-keys. ARGV: the new value, the value that it may replace. Returns the present value.
_CLAIM: Final = """
local known = redis.call('GET', KEYS[1])
if known and known ~= ARGV[2] then return known end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
"""


# The commands of the scripts with words that have no effect on a key that isn't there, or one that
# the last of them undoes.
_PROBED: Final = (
    ("EXISTS",),
    ("GET",),
    ("SET", "1", "XX"),
    ("HGET", "f"),
    ("HMGET", "f"),
    ("HGETALL",),
    ("HDEL", "f"),
    ("ZCARD",),
    ("ZRANK", "m"),
    ("ZRANGE", "0", "0"),
    ("ZRANGEBYSCORE", "0", "0"),
    ("ZADD", "XX", "1", "m"),
    ("ZREM", "m"),
    ("XREVRANGE", "+", "-", "COUNT", "1"),
    ("XADD", "NOMKSTREAM", "*", "m", ""),
    ("EXPIRE", "1"),
    ("PEXPIREAT", "1"),
    ("HSET", "f", "1"),
    ("HINCRBY", "f", "1"),
    ("DEL",),
)


class StoredRecord(NamedTuple):
    """A record as it is stored: as bytes without its result, and the result or None."""

    data: bytes
    result: bytes | None


class Removal(NamedTuple):
    """A record to remove, if it has this serial number, and the message about it."""

    key: TaskKey
    serial: int
    message: bytes


class StoredLease(NamedTuple):
    """A worker's lease, its number, and its field in the hash."""

    lease: WorkerLease
    number: int
    field: bytes


class RedisLayout:
    """The keys of one deployment in Redis, and what to call for each method of `TaskStore`.

    Args:
        name: the deployment's name, without braces. Workers of one server have the same.

    `changes` is the key of the stream of changed tasks, `mark` the one that `claim` sets.

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
        self.mark = self._prefix + "task-keys"
        self.changes = self._prefix + "task-changes"

    def record_key(self, member: str) -> str:
        """Return the key of the hash of the task that the sets know as `member`."""
        return f"{self._prefix}task:{member}"

    def create(self, record: TaskRecord, stored: StoredRecord, *, limits: TaskQuota) -> RedisCall:
        """Return the call that creates a record. It returns "created", "exists", or the limit."""
        member = member_of(record.key)
        arguments = (
            record.id,
            member,
            str(record.serial),
            stored.data,
            stored.result or b"",
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
        keys = (
            *self._places(member),
            self._all,
            self._running,
            self._usage,
            self._sizes,
            self._workers,
        )
        return RedisCall(_CREATE, keys, arguments)

    def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord,
        stored: StoredRecord,
        message: bytes,
        *,
        limits: TaskQuota | None = None,
    ) -> RedisCall:
        """Return the call that replaces a record. It returns 1 if it has, or the limit in its way.

        0 stands for a record that has another serial number, or is gone. `message` is appended to
        the stream of changes.
        """
        member = member_of(key)
        arguments = (
            str(serial),
            member,
            str(record.serial),
            stored.data,
            stored.result or b"",
            repr(record.expires),
            _worker(record),
            _removal_time(record),
            message,
            record.quota_key,
            str(record.size),
            "" if limits is None else str(limits.key_bytes),
            "" if limits is None else str(limits.total_bytes),
        )
        keys = (
            self.record_key(member),
            self._all,
            self._running,
            self._workers,
            self._usage,
            self._sizes,
            self.changes,
        )
        return RedisCall(_CHANGE, keys, arguments)

    def remove(self, removals: Iterable[Removal]) -> RedisCall:
        """Return the call that removes records. It returns a list: 1 for each that it has."""
        keys = [self._all, self._running, self._usage, self._sizes, self.changes]
        arguments: list[str | bytes] = []
        for key, serial, message in removals:
            member = member_of(key)
            keys += self._places(member)
            arguments += str(serial), key.id, member, message
        return RedisCall(_REMOVE, tuple(keys), tuple(arguments))

    def discard(self, strays: Iterable[tuple[str, bytes | None]]) -> RedisCall:
        """Return the call that removes damaged records, and members of sets without a record.

        `strays` are a member of a set, and the bytes that were read as its record, if any. A record
        that was written meanwhile stays.
        """
        keys = [self._all, self._running, self._usage, self._sizes]
        arguments: list[str | bytes] = []
        for member, data in strays:
            keys += self._places(member)
            digest = sha1(data, usedforsecurity=False).hexdigest() if data else ""
            arguments += digest, member.partition(":")[2], member
        return RedisCall(_DISCARD, tuple(keys), tuple(arguments))

    def read(self, members: Iterable[str], *, results: bool = False) -> RedisCall:
        """Return the call that returns for each member: serial, record, and its result if wanted.

        All are None if there is no such record, and empty if the key isn't of a record.
        """
        keys = tuple(self.record_key(member) for member in members)
        return RedisCall(_READ, keys, ("result" if results else "",))

    def page(self, owner: str, after: str, size: int) -> RedisCall:
        """Return the call that returns a page's ids, or nil if `after` is unknown."""
        return RedisCall(_PAGE, (self._owner_key(_digest(owner)),), (after, str(size)))

    def expired(self, size: int) -> RedisCall:
        """Return the call that returns the members of expired tasks."""
        return RedisCall(_EXPIRED, (self._all,), (str(size),))

    def renew_lease(self, worker: str, seconds: float) -> RedisCall:
        """Return the call that sets for how long a worker is believed to be alive."""
        return RedisCall(_RENEW, (self._workers,), (worker, repr(seconds)))

    def leases(self) -> RedisCall:
        """Return the call whose result `stored_leases` reads."""
        return RedisCall(_LEASES, (self._workers,), ())

    def lost(self, size: int, workers: Sequence[StoredLease]) -> RedisCall:
        """Return the call that returns the members of tasks of `workers`, and of no worker."""
        arguments: list[str | bytes] = [str(size)]
        for lease, number, field in workers:
            arguments += lease.worker, str(number), field
        return RedisCall(_LOST, (self._running, self._workers), tuple(arguments))

    def place(self, records: Iterable[TaskRecord]) -> RedisCall:
        """Return the call that notes again who runs these tasks. Pass one or more."""
        words = [word for each in records for word in (member_of(each.key), _worker(each))]
        return RedisCall(_PLACE, (self._running, self._workers), tuple(words))

    def claim(self, mark: bytes, known: bytes) -> RedisCall:
        """Return the call that stores by what to recognize the keys that sign.

        It returns `mark`, or what is stored if that is neither missing nor `known`.
        """
        return RedisCall(_CLAIM, (self.mark,), (mark, known))

    def probes(self) -> tuple[RedisCall, list[tuple[str, ...]]]:
        """Return a call that tries the scripts' commands, and the other commands that are used.

        None has an effect. The call returns the names of those that an ACL forbids.
        """
        key = f"{self._prefix}task-probe"
        return probe(key, _PROBED), [("XREAD", "COUNT", "1", "STREAMS", key, "0-0")]

    def _places(self, member: str) -> tuple[str, str]:
        return self.record_key(member), self._owner_key(member.partition(":")[0])

    def _owner_key(self, digest: str) -> str:
        return f"{self._all}:{digest}"


def member_of(key: TaskKey) -> str:
    """Return by what the sets know a task."""
    return f"{_digest(key.owner)}:{key.id}"


def stored_leases(reply: Sequence[bytes]) -> list[StoredLease]:
    """Return the leases that the call of `RedisLayout.leases` has returned.

    What isn't a lease is left out.
    """
    leases = []
    for name, field in zip(reply[::2], reply[1::2], strict=True):
        try:
            number, renewal, seconds = field.split(b" ")
            worker = name.decode()
            lease = WorkerLease(worker, int(renewal), float(seconds))
            leases.append(StoredLease(lease, int(number), field))
        except ValueError:
            continue
    return leases


def _digest(owner: str) -> str:
    # Of one length, so that no owner and id together look like another owner with another id.
    return blake2b(owner.encode(), digest_size=16).hexdigest()


def _worker(record: TaskRecord) -> str:
    return "-" if record.ended else record.worker


def _removal_time(record: TaskRecord) -> str:
    return str(round((record.expires + _KEPT_EXPIRED) * 1000))
