"""Malicious peers for tests: hostile servers, children, clients and messages.

Each table has attacks with a name, a sentence on what the hostile side does, and one on what a
well-behaved peer does about it. They are made for `pytest.mark.parametrize`:

    @pytest.mark.parametrize("attack", hostile.SERVER_ATTACKS, ids=str)
    async def test_client_survives(attack):
        async with hostile.hostile_server(attack) as server:
            with trio.move_on_after(5):
                await use_my_client(server.url)

- `SERVER_ATTACKS`, `hostile_server`: an HTTP or WebSocket server that attacks its client;
- `CHILD_ATTACKS`, `hostile_command`: a stdio server that attacks the client that starts it;
- `CLIENT_ATTACKS`, `attack_server`: a client that attacks an HTTP server;
- `MESSAGE_ATTACKS`, `hostile_message`: payloads, for any transport and either role.

All of it stays on this machine: servers listen on 127.0.0.1, and only loopback addresses are
attacked. An attack sends 8 MiB at most and ends after 30 seconds. Bytes are literal: no library
repairs them.
"""

from __future__ import annotations

from ._attack import MAX_BYTES, MAX_SECONDS, Attack
from ._child import CHILD_ATTACKS, hostile_command
from ._client_attacks import CLIENT_ATTACKS, AttackOutcome, attack_server
from ._messages import MESSAGE_ATTACKS, hostile_message
from ._server import HostileServer
from ._server_attacks import SERVER_ATTACKS, hostile_server

__all__ = [
    "CHILD_ATTACKS",
    "CLIENT_ATTACKS",
    "MAX_BYTES",
    "MAX_SECONDS",
    "MESSAGE_ATTACKS",
    "SERVER_ATTACKS",
    "Attack",
    "AttackOutcome",
    "HostileServer",
    "attack_server",
    "hostile_command",
    "hostile_message",
    "hostile_server",
]
