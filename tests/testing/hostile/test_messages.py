"""Hostile messages leave nothing behind in a connection."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from mcp_core import NEED_DATA, PAUSED, Connection, Role
from mcp_trio.testing import hostile
from tests.harness.jsonrpc import client_config, server_config

if TYPE_CHECKING:
    from mcp_core import Config


def connection(role: Role) -> Connection:
    config: Config = server_config() if role is Role.SERVER else client_config()
    return Connection(role, config)


def count_errors() -> int:
    gc.collect()
    return sum(isinstance(each, BaseException) for each in gc.get_objects())


@pytest.mark.parametrize("role", [Role.CLIENT, Role.SERVER])
@pytest.mark.parametrize("attack", hostile.MESSAGE_ATTACKS, ids=str)
def test_connection_hostile_messages_are_forgotten(attack: hostile.Attack, role: Role) -> None:
    """An error that is kept, with the frames of its traceback, is a leak that a peer can drive."""
    conn = connection(role)
    data = hostile.hostile_message(attack) + b"\n"

    def receive() -> None:
        conn.receive_data(data, now=0.0)
        while conn.next_event() not in (NEED_DATA, PAUSED):
            pass
        conn.data_to_send()

    receive()
    before = count_errors()
    for _ in range(10):
        receive()
    assert count_errors() <= before


def test_connection_hostile_batch_members_are_forgotten() -> None:
    conn = connection(Role.SERVER)
    before = count_errors()
    for _ in range(10):
        conn.receive_data(b'[{"jsonrpc":"2.0"},1,{"id":1}]\n', now=0.0)
        while conn.next_event() not in (NEED_DATA, PAUSED):
            pass
        conn.data_to_send()
    assert count_errors() <= before
