"""The contract of a `SessionStore`, as a function that tries a store.

It takes nothing for granted about what the store has already: each check begins where a new worker
joins, and uses a server's name of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core.runtime.tasks import TaskRuntime
from mcp_core.sharing import ChangesPublished, Position, SessionStore, WorkerBatch, merged

if TYPE_CHECKING:
    from mcp_core.sharing import WorkerMessage

__all__ = ["check_session_store"]

T = TypeVar("T")

# Seconds after which a method counts as not responding. A read may wait for some of them.
_PATIENCE: Final = 20.0
_MAX_NUMBER: Final = 2**21 - 1
_TOGETHER: Final = 10  # publishes at once
_SHORT: Final = 0.05  # seconds for a read that begins to wait
_NAME_SIZE: Final = 8  # bytes
_TOOLS: Final = ("tools",)


async def check_session_store(make: Callable[[], SessionStore], runtime: TaskRuntime) -> None:
    """Try whether a store keeps the contract of `SessionStore`.

    Args:
        make: returns a store that isn't open. It is called several times, and all stores that it
            returns are one deployment, as those of several processes are. For a store in memory it
            returns the same one each time.
        runtime: the runtime in which they are opened. It has `keys` if the stores need them.

    Raises:
        AssertionError: the store does something else. The text says what.
        Exception: any exception that the store raises.
    """
    await _check_closed(make(), runtime)
    await _check_opens_soon(make(), runtime)
    for check in (
        _check_numbers,
        _check_messages,
        _check_waiting_read,
        _check_cancelled_read,
        _check_together,
        _check_missed,
        _check_gaps,
        _check_opened_twice,
    ):
        async with _Stores(make, runtime).opened() as stores:
            await check(stores)


class _Stores:
    """Two stores of one deployment. `server` is a name that no other check uses."""

    def __init__(self, make: Callable[[], SessionStore], runtime: TaskRuntime) -> None:
        self.runtime = runtime
        self.a, self.b = make(), make()
        self.server = f"check {runtime.entropy(_NAME_SIZE).hex()}"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[_Stores]:
        async with self.a.opened(self.runtime), self.b.opened(self.runtime):
            yield self

    def message(self, *uris: str, **fields: Any) -> ChangesPublished:
        return ChangesPublished(self.server, uris=uris, **fields)

    async def soon(self, awaitable: Awaitable[T]) -> T:
        """Return what a method returns. It has to do so within `_PATIENCE`."""

        async def wait() -> T:
            return await awaitable

        return await self.runtime.within(_PATIENCE, wait)

    def begin(self, function: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Run `function` in a task. What is returned waits for its value, or its exception."""
        ended = self.runtime.new_event()
        values: list[T] = []
        errors: list[Exception] = []

        async def run() -> None:
            try:
                values.append(await function())
            except Exception as exc:  # noqa: BLE001 - raised by the check
                errors.append(exc)
            ended.set()

        async def outcome() -> T:
            await self.runtime.wait(ended)
            if errors:
                raise errors[0]
            return values[0]

        self.runtime.start_soon(run)
        return outcome

    async def read(
        self, store: SessionStore, position: Position, number: int
    ) -> list[tuple[int, WorkerMessage] | None]:
        """Read until so many messages of this check have come, or a gap. Return all.

        There are fewer if the store has lost some, so that they don't come within `_PATIENCE`.
        """
        found: list[tuple[int, WorkerMessage] | None] = []

        async def read_on() -> None:
            place = position
            while len(found) < number and None not in found:
                batch = await store.read(place)
                _check(isinstance(batch, WorkerBatch), f"read returns a WorkerBatch, not {batch!r}")
                _check(
                    batch.position >= place, f"after {place}, read went back to {batch.position}"
                )
                _check(
                    not batch.messages or batch.position > place,
                    f"read returned {len(batch.messages)} messages after {place}, and stays there",
                )
                place = batch.position
                found.extend(each for each in batch.messages if each is None or self._is_ours(each))

        with suppress(TimeoutError):
            await self.runtime.within(_PATIENCE, read_on)
        return found

    def _is_ours(self, entry: tuple[int, WorkerMessage]) -> bool:
        return isinstance(entry[1], ChangesPublished) and entry[1].server == self.server


async def _check_closed(store: SessionStore, runtime: TaskRuntime) -> None:
    _check(type(store.needs_keys) is bool, "needs_keys is True or False")
    worker = 1
    position, message = Position(worker, worker), ChangesPublished("x", lists=_TOOLS)
    for name, call in {
        "join": lambda: store.join("x"),
        "heartbeat": lambda: store.heartbeat(worker),
        "alive": lambda: store.alive([worker]),
        "leave": lambda: store.leave(worker),
        "publish": lambda: store.publish(worker, message),
        "missed": lambda: store.missed("x", position),
        "read": lambda: store.read(position),
    }.items():
        try:
            await runtime.within(_PATIENCE, call)
        except RuntimeError:
            continue
        raise AssertionError(f"{name} of a store that isn't open has to raise RuntimeError")


async def _check_opens_soon(store: SessionStore, runtime: TaskRuntime) -> None:
    """A server that is started doesn't wait for its store."""

    async def open_once() -> None:
        async with store.opened(runtime):
            pass

    try:
        await runtime.within(_PATIENCE, open_once)
    except TimeoutError:
        raise AssertionError(
            f"not a SessionStore: to enter and leave it takes more than {_PATIENCE:g} s"
        ) from None


async def _check_numbers(stores: _Stores) -> None:
    a, b = stores.a, stores.b
    places = [await stores.soon(store.join(stores.server)) for store in (a, b, a)]
    numbers = [place.number for place in places]
    _check(len({*numbers}) == len(numbers), f"each worker has a number of its own: {numbers}")
    _check(all(0 < each <= _MAX_NUMBER for each in numbers), f"too high or low: {numbers}")
    unknown = next(each for each in range(1, 5) if each not in numbers)
    _check(
        await stores.soon(a.alive([*numbers, unknown])) >= {*numbers},
        "a worker is alive when it has joined",
    )
    _check(await stores.soon(b.alive([])) == set(), "of no workers none is alive")
    last = await stores.soon(a.publish(numbers[0], stores.message("u:1")))
    for store, number in ((a, numbers[0]), (b, numbers[1])):
        heard = await stores.soon(store.heartbeat(number))
        _check(
            heard is not None and heard >= last,
            f"heartbeat returns the last position, {last} or later, not {heard}",
        )
    await stores.soon(a.leave(numbers[0]))
    alive = await stores.soon(b.alive(numbers))
    _check(alive == {*numbers[1:]}, "a worker that has left isn't alive, and the others are")
    await stores.soon(a.leave(numbers[0]))  # again: no error


async def _check_messages(stores: _Stores) -> None:
    """Messages come in order, as they were published, at every worker, also at their sender."""
    a, b = stores.a, stores.b
    first, second = [await stores.soon(store.join(stores.server)) for store in (a, b)]
    messages = [
        (a, first.number, stores.message(lists=_TOOLS)),
        (b, second.number, stores.message("u:1", "ü:\u2028\N{GRINNING FACE}\0")),
        (a, first.number, stores.message(all_uris=True, elicitations=("e1", "e2"))),
        (b, second.number, stores.message(*(f"u:{'x' * 100}{n}" for n in range(1000)))),
    ]
    position = second.position
    for store, number, message in messages:
        published = await stores.soon(store.publish(number, message))
        _check(isinstance(published, Position), f"publish returns a Position, not {published!r}")
        _check(published > position, f"{published} isn't after {position}")
        position = published
    wanted = [(number, message) for _, number, message in messages]
    for store in (a, b):
        found = await stores.read(store, second.position, len(wanted))
        _check(found == wanted, f"published: {wanted}; read: {found}")
    # A worker that joins now hears nothing of this.
    third = await stores.soon(b.join(stores.server))
    _check(third.position >= position, f"a new worker begins at {position}, not {third.position}")


async def _check_waiting_read(stores: _Stores) -> None:
    """A read that waits ends when something is published, by another store or by its own."""
    place = await stores.soon(stores.a.join(stores.server))
    for publisher in (stores.b, stores.a):
        reading = stores.begin(partial(stores.read, stores.a, place.position, 1))
        await stores.runtime.wait(stores.runtime.new_event(), _SHORT)
        message = stores.message("u:waiting")
        position = await stores.soon(publisher.publish(place.number, message))
        found = await reading()
        _check(found == [(place.number, message)], f"published: {message}; read: {found}")
        place = place._replace(position=position)


async def _check_cancelled_read(stores: _Stores) -> None:
    """A read that was cancelled loses nothing."""
    store = stores.a
    place = await stores.soon(store.join(stores.server))
    with suppress(TimeoutError):  # others may publish meanwhile, so it may return
        await stores.runtime.within(_SHORT, partial(store.read, place.position))
    message = stores.message("u:cancelled")
    await stores.soon(store.publish(place.number, message))
    found = await stores.read(store, place.position, 1)
    _check(found == [(place.number, message)], f"published: {message}; read: {found}")


async def _check_together(stores: _Stores) -> None:
    """Publishes at once have positions of their own, and every worker hears them in one order."""
    workers = [
        (store, await stores.soon(store.join(stores.server))) for store in (stores.a, stores.b)
    ]
    published = [
        (store, place.number, stores.message(f"u:{place.number}:{step}"))
        for step in range(_TOGETHER)
        for store, place in workers
    ]
    publishing = [
        stores.begin(
            partial(stores.runtime.within, _PATIENCE, partial(store.publish, number, message))
        )
        for store, number, message in published
    ]
    positions = [await outcome() for outcome in publishing]
    _check(len({*positions}) == len(positions), f"two messages have one position: {positions}")
    start = workers[-1][1].position
    orders = [await stores.read(store, start, len(published)) for store, _ in workers]
    _check(orders[0] == orders[1], "two workers heard messages in different orders")
    wanted = [(number, message) for _, number, message in published]
    _check(
        sorted(orders[0], key=repr) == sorted(wanted, key=repr),
        f"published at once: {wanted}; read: {orders[0]}",
    )


async def _check_missed(stores: _Stores) -> None:
    """`missed` merges what was published about one server after a position."""
    a, b = stores.a, stores.b
    place = await stores.soon(a.join(stores.server))
    one, two = stores.message("u:1", lists=_TOOLS), stores.message("u:2", elicitations=("e",))
    other = ChangesPublished(f"other than {stores.server}", lists=("prompts",))
    between = await stores.soon(a.publish(place.number, one))
    await stores.soon(a.publish(place.number, other))
    last = await stores.soon(a.publish(place.number, two))
    for since, wanted in ((place.position, [one, two]), (between, [two]), (last, [])):
        found = await stores.soon(b.missed(stores.server, since))
        message = merged(wanted, stores.server)
        _check(
            found is not None and _content(found) == _content(message),
            f"missed since {since}: {message}; returned: {found}",
        )
    for unknown in (
        Position(last.epoch - 1, last.number),
        Position(last.epoch, last.number + 10**9),
    ):
        found = await stores.soon(b.missed(stores.server, unknown))
        _check(found is None, f"{unknown} was never a position, and missed returns {found}")


async def _check_gaps(stores: _Stores) -> None:
    """A reader at a position that the store doesn't know gets a gap, and then all that comes."""
    store = stores.a
    place = await stores.soon(store.join(stores.server))
    last = await stores.soon(store.publish(place.number, stores.message("u:1")))
    earlier = await stores.soon(store.read(Position(last.epoch - 1, last.number)))
    _check(None in earlier.messages, f"after a position of another epoch there is a gap: {earlier}")
    _check(earlier.position >= last, f"it goes on at {last}, not {earlier.position}")
    message = stores.message("u:2")
    await stores.soon(store.publish(place.number, message))
    found = await stores.read(store, earlier.position, 1)
    _check(found == [(place.number, message)], f"published: {message}; read: {found}")


async def _check_opened_twice(stores: _Stores) -> None:
    """A store is open until all that have entered it have left it."""
    async with stores.a.opened(stores.runtime):
        place = await stores.soon(stores.a.join(stores.server))
    await stores.soon(stores.a.publish(place.number, stores.message("u:1")))


def _content(message: ChangesPublished) -> tuple[Any, ...]:
    return (
        {*message.lists},
        {*message.uris},
        message.all_uris,
        {*message.elicitations},
    )


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(f"not a SessionStore: {text}")
