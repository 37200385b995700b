"""The notifier of one connection: which states of tasks it sends, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_core.runtime.tasks._notifier import notifier_of
from mcp_core.tasks import TaskLimits
from mcp_core.types import ListRootsRequest
from tests.core.tasks.store_contract import NOW, new_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.tasks import TaskKey, TaskRecord

A, B = new_record("a"), new_record("b")


def later(record: TaskRecord, serial: int, **fields: Any) -> TaskRecord:
    return replace(record, serial=serial, **({"message": f"step {serial}"} | fields))


class ObservedRecords:
    """Records that are published by hand.

    Attributes:
        observers: those of each task.
        read: the tasks that were to be read and published.
    """

    def __init__(self) -> None:
        self.limits = TaskLimits()
        self.observers: dict[TaskKey, list[Callable[[TaskRecord | None], object]]] = {}
        self.read: list[TaskKey] = []

    def observe(self, key: TaskKey, observer: Callable[[TaskRecord | None], object]) -> None:
        self.observers.setdefault(key, []).append(observer)

    def stop_observing(self, key: TaskKey, observer: Callable[[TaskRecord | None], object]) -> None:
        self.observers[key].remove(observer)
        if not self.observers[key]:
            del self.observers[key]

    def changed(self, key: TaskKey) -> None:
        self.read.append(key)

    def publish(self, record: TaskRecord) -> None:
        for observer in list(self.observers.get(record.key, ())):
            observer(record)

    def remove(self, key: TaskKey) -> None:
        for observer in list(self.observers[key]):
            observer(None)


class NotifiedService:
    """A connection's service, as far as a notifier needs it.

    Attributes:
        subscribed: the ids of tasks whose states the client wants.
        sent: the params of the notifications.
        jobs: what runs soon.
        pumps: how often what was sent was to be written.
    """

    def __init__(self) -> None:
        self.task_notifier: Any = None
        self.subscribed = {"a", "b"}
        self.sent: list[Any] = []
        self.jobs: list[Callable[[], object]] = []
        self.pumps = 0
        self.conn = SimpleNamespace(
            is_subscribed_to_task=lambda id: id in self.subscribed, send_task_status=self._send
        )
        self.runtime = SimpleNamespace(
            call_soon=self.jobs.append, wall_time=lambda: NOW, pump=self._pump
        )

    def _send(self, params: Any) -> bool:
        if params.task_id not in self.subscribed:
            return False
        self.sent.append(params)
        return True

    def _pump(self) -> None:
        self.pumps += 1

    def run_jobs(self) -> list[str | None]:
        """Run all jobs, and return the messages of the states that were sent."""
        while self.jobs:
            self.jobs.pop(0)()
        messages = [each.status_message for each in self.sent]
        self.sent.clear()
        return messages


def open_notifier() -> tuple[Any, NotifiedService, ObservedRecords]:
    service: Any = NotifiedService()
    records: Any = ObservedRecords()
    notifier = notifier_of(service, records)
    assert service.task_notifier is notifier is notifier_of(service, records)
    return notifier, service, records


def test_followed_task_is_sent_after_its_present_state_and_not_before_the_job() -> None:
    """The result that creates a task has its state, and must be sent before any later one."""
    notifier, service, records = open_notifier()
    notifier.follow(A)
    records.publish(A)
    assert service.run_jobs() == []
    assert service.pumps == 0
    records.publish(later(A, 2))
    assert service.sent == []
    assert service.run_jobs() == ["step 2"]
    assert service.pumps == 1
    assert records.read == []


def test_task_that_is_listened_to_is_read_and_sent_even_if_it_did_not_change() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.listen([A.key, B.key])
    assert records.read == [A.key, B.key]
    assert {key: len(each) for key, each in records.observers.items()} == {A.key: 1, B.key: 1}
    records.publish(replace(A, message="as before"))
    records.publish(replace(B, message="b"))
    assert service.run_jobs() == ["as before", "b"]
    assert service.pumps == 1


def test_states_that_wait_are_replaced_by_the_last_one() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    for serial in (2, 4, 3):
        records.publish(later(A, serial))
    assert service.run_jobs() == ["step 4"]


def test_state_that_comes_twice_or_after_a_later_one_is_not_sent() -> None:
    """A store's state may be read before a change, and published after it."""
    notifier, service, records = open_notifier()
    notifier.follow(A)
    records.publish(later(A, 3))
    records.publish(later(A, 3))
    assert len(service.jobs) == 1
    assert service.run_jobs() == ["step 3"]
    for serial in (3, 2):
        records.publish(later(A, serial))
        assert service.run_jobs() == []
    records.publish(later(A, 4))
    assert service.run_jobs() == ["step 4"]
    assert service.pumps == 2


def test_state_that_the_client_cannot_see_is_not_sent_and_the_next_task_is() -> None:
    """A worker renews its lease, or another one takes the task: the client sees nothing of it."""
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.follow(B)
    records.publish(replace(A, serial=2, worker="w2"))
    records.publish(later(B, 2))
    assert service.run_jobs() == ["step 2"]
    records.publish(replace(A, serial=3, updated=NOW + 1, message="a"))
    assert service.run_jobs() == ["a"]


def test_each_part_that_a_client_sees_is_sent_once_it_changes() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    fields: list[dict[str, Any]] = [
        {"updated": NOW + 1},
        {"status": "input_required"},
        {"message": "more"},
        {"open_requests": {"q": ListRootsRequest()}},
    ]
    record = A
    for serial, each in enumerate(fields, 2):
        record = replace(record, serial=serial, **each)
        records.publish(record)
        assert len(service.run_jobs()) == 1


def test_late_state_of_an_unchanged_task_and_the_next_task_in_one_job() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(later(A, 5))
    notifier.follow(B)
    records.publish(later(A, 4))
    records.publish(later(B, 2))
    assert service.run_jobs() == ["step 2"]


def test_ended_task_is_sent_and_no_longer_observed() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.follow(B)
    records.publish(later(A, 2, status="cancelled"))
    records.publish(later(B, 2))
    assert service.run_jobs() == ["step 2", "step 2"]
    assert service.pumps == 1
    assert [*records.observers] == [B.key]
    # Followed once more it begins anew.
    notifier.follow(A)
    records.publish(later(A, 2))
    assert service.run_jobs() == ["step 2"]


def test_task_without_a_subscription_is_no_longer_observed() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.follow(B)
    service.subscribed = {"a"}
    for record in (A, B):  # the last one isn't sent, but the first one has to be written
        records.publish(later(record, 2))
    assert service.run_jobs() == ["step 2"]
    assert service.pumps == 1
    assert [*records.observers] == [A.key]
    service.subscribed = set()
    records.publish(later(A, 3))
    assert service.run_jobs() == []
    assert service.pumps == 1
    assert not records.observers


def test_listening_anew_forgets_the_tasks_of_ended_listen_requests() -> None:
    notifier, service, records = open_notifier()
    notifier.listen([A.key, B.key])
    records.publish(A)
    service.subscribed = {"b"}
    notifier.listen([B.key])
    assert [*records.observers] == [B.key]
    service.subscribed = {"a", "b"}
    assert service.run_jobs() == []


def test_removed_task_is_no_longer_observed_nor_sent() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.follow(B)
    records.publish(later(A, 2))
    records.remove(A.key)
    assert [*records.observers] == [B.key]
    assert service.run_jobs() == []
    records.publish(later(B, 2))
    assert service.run_jobs() == ["step 2"]


def test_closed_notifier_observes_and_sends_nothing() -> None:
    notifier, service, records = open_notifier()
    notifier.follow(A)
    notifier.follow(A)
    notifier.follow(B)
    records.publish(later(A, 2))
    for _ in range(2):
        notifier.close()
        assert not records.observers
    assert service.run_jobs() == []
    assert service.pumps == 0


def test_notifier_whose_connection_is_gone_stops_with_the_next_state() -> None:
    """A task may outlive its connection, which nothing closed, by hours."""
    notifier, service, records = open_notifier()
    notifier.follow(A)
    records.publish(later(A, 2))
    jobs = [*service.jobs]
    vars(service).clear()  # it refers to itself
    del service
    for job in jobs:
        job()
    assert [*records.observers] == [A.key]
    records.publish(later(A, 3))
    assert not records.observers
