"""The record of one task, and the limits on tasks.

1. A record is never changed: `_states.transition` returns the next one, with a higher serial
   number.
2. The owner is a part of the key. Another owner's task isn't found, as one that never was.
3. A record has no access token, no header and no session id. The results and responses in it are
   the user's data: keep a store as private as they are.
"""

from __future__ import annotations

from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from mcp_core.protocol.jsonrpc._codec import InvalidPayload, check_object, encode, reader
from mcp_core.types import ClientCapabilities, ErrorData, Implementation, InputRequest, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "FINAL_STATUSES",
    "TaskCall",
    "TaskKey",
    "TaskLimits",
    "TaskQuota",
    "TaskRecord",
    "decode_record",
    "encode_record",
    "join_record",
    "new_task_id",
    "quota_key",
    "split_record",
]

# The statuses of a task that has ended.
FINAL_STATUSES: Final = frozenset({"completed", "failed", "cancelled"})

# Without authorization the id is the only secret that protects a task (2025-11-25,
# basic/utilities/tasks, Task Isolation and Access Control): 128 bits, as of a session id.
_ID_SIZE: Final = 16
# The beginnings of the quota keys of users, and of addresses. A key has no name, as little as the
# owner has: who reads the store need not learn who has used the server.
_USER: Final = "user:"
_ADDRESS: Final = "address:"


class TaskQuota(Struct, frozen=True, kw_only=True):
    """The limits that a store checks: for the tasks of one quota key, and for all. Sizes in bytes.

    Attributes:
        per_key: tasks with the quota key of the record, ended ones included.
        total: the server's tasks.
        key_bytes: the sum of `TaskRecord.size` of the tasks with that quota key.
        total_bytes: that sum of all tasks.
    """

    per_key: int
    total: int
    key_bytes: int
    total_bytes: int


class TaskLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds on tasks. Sizes are in bytes, times in seconds.

    Raises:
        ValueError: a limit isn't positive or not finite, `client_share` is above 1, or `ttl` or
            `poll_interval` is longer than the longest.
    """

    # Tasks of one principal with all of its clients, ended ones included. More than one user starts
    # by hand. The one user of a pipe or a Unix socket counts as a principal.
    per_principal: int = 100
    # Tasks of one server. 10,000 records are some 20 MB; an open task in memory takes 12 KiB.
    total: int = 10_000
    # The part of `total` that one IP address may use without authorization (IPv6: one /64 network),
    # and the part of `stored_bytes` and `file_bytes` of an address or a principal. A quarter, as of
    # a client's sessions: it leaves room for others, and is enough for all clients of a proxy
    # that isn't in `trusted_proxies`, which count as one. 1 for no quotas.
    client_share: float = 0.25
    # Memory of the tasks in one process: the arguments of those whose handlers run, decoded ones
    # included, and in a `MemoryTaskStore` also responses and results. A server on a small machine
    # can lose that much.
    stored_bytes: int = 64 * 1024 * 1024
    # The same of all tasks in a store that outlives the process. A disk has more room than memory,
    # and holds the results of a day.
    file_bytes: int = 256 * 1024 * 1024
    # How long a task is kept after it was created, if its client doesn't say. Long enough to
    # fetch the result after a meal.
    ttl: float = 3600.0
    # The longest time that a client may ask for: a day, so that a result can be fetched tomorrow.
    max_ttl: float = 24 * 3600.0
    # Input requests of a task without a response. More are a loop that went wrong.
    open_requests: int = 16
    # Input requests in a task's life.
    requests: int = 100
    # The result or the error, encoded: as long as a message.
    result: int = 4 * 1024 * 1024
    # All responses to input requests of a task together. They come from the client, each as long
    # as a message, and a store writes all of them again with every change.
    responses: int = 4 * 1024 * 1024
    # The status message's characters.
    message: int = 1_000
    # Seconds between two status messages that are stored, so that the progress of a tight loop
    # doesn't write to a database all the time.
    message_interval: float = 1.0
    # `tasks/result` requests of one connection that wait (2025-11-25). Each holds a place among
    # the requests in flight, which others need too.
    waiting: int = 16
    # How long a worker that has stopped renewing its lease is believed to be alive.
    lease: float = 30.0
    # The interval at which clients are asked to poll at first, because a young task often ends
    # soon. Then it is a tenth of the task's age.
    poll_interval: float = 0.5
    # The longest interval: the result should not wait much longer than a user notices.
    max_poll_interval: float = 5.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            # Not infinite: a store may have no such number, and JSON has none.
            if not (getattr(self, name) > 0 and isfinite(getattr(self, name))):
                raise ValueError(f"TaskLimits.{name} has to be positive and finite")
        for name in ("ttl", "poll_interval"):
            if getattr(self, name) > getattr(self, f"max_{name}"):
                raise ValueError(f"TaskLimits.{name} has to be at most max_{name}")
        if self.client_share > 1:
            raise ValueError("TaskLimits.client_share has to be at most 1")

    def kept_for(self, wish: float | UnsetType | None) -> float:
        """Return for how many seconds a task is kept whose client wishes `wish` milliseconds.

        `wish` is the `ttl` of a `types.TaskMetadata`: UNSET is none, None is "without a limit". The
        client gets the actual time with the task.
        """
        if wish is UNSET:
            return self.ttl
        # Compare before dividing: JSON has integers that no float can hold.
        if wish is None or wish >= self.max_ttl * 1000:
            return self.max_ttl
        # At least until the first poll, without which the client could not get the result.
        return min(max(max(wish, 0) / 1000, self.poll_interval), self.max_ttl)

    def quota(self, key: str, *, durable: bool) -> TaskQuota:
        """Return the limits for tasks of the quota `key`.

        `durable` is True for a store that outlives the process.
        """
        size = self.file_bytes if durable else self.stored_bytes
        # Nothing tells a client without an address from others, and the one user has no others.
        shares = key not in ("", _ADDRESS)
        if not key.startswith(_ADDRESS):
            tasks = self.per_principal
        else:
            tasks = self._share(self.total) if shares else self.total
        return TaskQuota(
            per_key=tasks,
            total=self.total,
            key_bytes=self._share(size) if shares else size,
            total_bytes=size,
        )

    def _share(self, total: int) -> int:
        return min(total, max(1, int(total * self.client_share)))


class TaskKey(NamedTuple):
    """A task's key: `owner`, "" if there is only one, and `id`."""

    owner: str
    id: str

    def __repr__(self) -> str:
        # Without authorization the id is a secret, and keys are in the errors of stores.
        return f"<TaskKey of {self.owner!r}>"


# Without the garbage collector: a store in memory keeps thousands, and a frozen record, made of
# values, is in no cycle.
class TaskCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A task's call, stored if another worker may have to run it again.

    Attributes:
        params: the request's params, as JSON.
        capabilities: those that the client declared.
        client: the client's name and version, None if it did not say.
        principal: the authenticated user, "" without authorization.
    """

    params: Raw
    capabilities: ClientCapabilities
    client: Implementation | None = None
    principal: str = ""


class TaskRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The state of one task. All times are in seconds; `created` and the like are since 1970.

    Attributes:
        id: the task id.
        owner: the owner, who alone may see the task.
        serial: 1 at first; each change adds 1.
        status: as in the specification, but "completed" also for a tool result with `isError`.
        message: the status message, for people, or None.
        created: when the task was created.
        updated: when it was changed last, apart from its worker.
        ttl: how long the task is kept after it was created.
        tool: the tool's name.
        revision: the revision of the request that created the task.
        open_requests: the input requests that have no response, by key. Empty unless `status` is
            "input_required".
        responses: the responses to earlier input requests, by key. A key is used once.
        result: the call's result, as JSON of `revision`; UNSET unless `status` is "completed".
        is_error: True if the result is a tool result with `isError`.
        error: the call's error, if `status` is "failed".
        worker: the worker that runs the handler, "" if none does. It has a lease in the store.
        call: the call to run again after the worker was lost; None not to run it again.
        quota_key: whose quota it counts for: see `quota_key`. "" for the one user of the server.
        size: the bytes that it counts for: the arguments until it has ended, the input requests and
            responses until then, and the result or the error.
    """

    id: str
    owner: str = ""
    serial: int = 1
    status: TaskStatus = "working"
    message: str | None = None
    created: float
    updated: float
    ttl: float
    tool: str
    revision: str
    open_requests: dict[str, InputRequest] = {}
    responses: dict[str, Raw] = {}
    result: Raw | UnsetType = UNSET
    is_error: bool = False
    error: ErrorData | None = None
    worker: str = ""
    call: TaskCall | None = None
    quota_key: str = ""
    size: int = 0

    def __repr__(self) -> str:
        # Neither the id, which may be the only secret, nor the user's data.
        return f"<TaskRecord of {self.tool!r} {self.status} serial {self.serial}>"

    @property
    def key(self) -> TaskKey:
        """The key under which the record is stored."""
        return TaskKey(self.owner, self.id)

    @property
    def expires(self) -> float:
        """When the task is forgotten, in seconds since 1970."""
        return self.created + self.ttl

    @property
    def ended(self) -> bool:
        """True if the status is final."""
        return self.status in FINAL_STATUSES


_read: Final[Callable[[Raw | bytes], Any]] = reader(TaskRecord)


def encode_record(record: TaskRecord) -> bytes:
    """Encode `record` as JSON.

    Raises:
        TypeError, ValueError: the record has a value that isn't JSON. `transition` never adds one.
    """
    return encode(record)


def decode_record(data: bytes) -> TaskRecord:
    """Decode `data` that `encode_record` returned, in this version or another.

    Unknown members are ignored. The record may be without its result, which a store may keep
    elsewhere.

    Raises:
        InvalidPayload: the data isn't a record, or one that no task can have.
    """
    try:
        # The decoder doesn't look into `Raw` members, which are sent to clients as they are.
        if not data.isascii():
            str(data, "utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidPayload(f"not UTF-8 at byte {exc.start}") from None
    record: TaskRecord = _read(data)
    error = _find_error(record)
    if error:
        raise InvalidPayload(error)
    return record


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


def _find_error(record: TaskRecord) -> str:
    if record.serial < 1:
        return "the serial number is not positive"
    if record.size < 0:
        return "the size is negative"
    if bool(record.open_requests) != (record.status == "input_required"):
        return f"a task that is {record.status} has {len(record.open_requests)} open requests"
    if not record.open_requests.keys().isdisjoint(record.responses):
        return "an open request has a response"
    if (record.result is not UNSET or record.is_error) and record.status != "completed":
        return f"a task that is {record.status} has a result"
    if record.result is not UNSET and bytes(memoryview(record.result)[:1]) != b"{":
        return "the result is no object"
    if (record.error is not None) != (record.status == "failed"):
        return f"a task that is {record.status} has {'an' if record.error else 'no'} error"
    return ""


def new_task_id(entropy: Callable[[int], bytes]) -> str:
    """Return an id that cannot be guessed. `entropy` returns that many random bytes."""
    return entropy(_ID_SIZE).hex()


def quota_key(principal: str, address: str | None) -> str:
    """Return the key under which the tasks of a client count.

    Args:
        principal: the authenticated user, "" without one.
        address: without a user, what tells the client from others, such as its IP address. "" if
            nothing does; None if the transport has one user only.
    """
    if principal:
        return _USER + _digest(principal)
    if address is None:
        return ""
    return _ADDRESS + (_digest(address) if address else "")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
