"""Failures of Redis and Valkey, as sentences of cause and cure.

1. Exceptions of coredis are recognised by the names of their classes, and by the first word of what
   the server has said, so that nothing has to be imported for it.
2. What a server says may repeat a command, hence a password: it isn't shown where it may.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ACL_CURE", "Explanation", "RedisFailure", "explained"]

ACL_CURE: Final = "The rule is in the documentation, on the page about several workers"
_MAX_SHOWN: Final = 200  # characters of what a server has said
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_WORD: Final = re.compile(r"-?([A-Z]{3,})\b")


class RedisFailure(Exception):
    """Redis cannot be reached, doesn't respond, or refuses. The text has the cause and the cure.

    Attributes:
        is_final: True if waiting doesn't help: the configuration is wrong, here or there.
    """

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class Explanation(NamedTuple):
    """Why a command failed.

    Attributes:
        text: cause and cure.
        is_outage: whether other commands would fail now, too.
        is_final: whether they would fail later, too.
        reconnects: whether a new connection may be better.
    """

    text: str
    is_outage: bool = False
    is_final: bool = False
    reconnects: bool = False


# By the first word of what the server has said, which is also what coredis makes its classes of.
_EXPLANATIONS: Final = {
    "WRONGPASS": Explanation(
        "it doesn't accept the user and the password. Compare them with the server's ACL; in a URL"
        " they are percent-encoded",
        is_outage=True,
        is_final=True,
    ),
    "NOAUTH": Explanation(
        "it needs a password: redis://:PASSWORD@HOST, or redis://USER:PASSWORD@HOST",
        is_outage=True,
        is_final=True,
    ),
    "READONLY": Explanation(
        "it is a replica, which refuses writes. Give the address of the primary, or a client of"
        " coredis that finds it by Sentinel",
        is_outage=True,
        reconnects=True,
    ),
    "LOADING": Explanation(
        "it is loading its data after a start, and responds when that is done", is_outage=True
    ),
    "BUSY": Explanation(
        "it is busy with somebody's script. `SCRIPT KILL` ends that if it has written nothing",
        is_outage=True,
    ),
    "OOM": Explanation(
        "it has no memory left: raise its maxmemory, or remove what others keep there. What workers"
        " share has a time to live, and never needs much"
    ),
    "MISCONF": Explanation(
        "it refuses writes because it cannot save to its disk: free some space there, and look"
        " at its log",
        is_outage=True,
    ),
    "NOREPLICAS": Explanation(
        "it refuses writes because it has fewer replicas than min-replicas-to-write says",
        is_outage=True,
    ),
    "MASTERDOWN": Explanation(
        "it is a replica that has lost its primary", is_outage=True, reconnects=True
    ),
    "CLUSTERDOWN": Explanation(
        "its cluster is down, because a part of the keys has no node", is_outage=True
    ),
    "TRYAGAIN": Explanation("its cluster is moving the keys; it responds when that is done"),
    "CROSSSLOT": Explanation(
        "its cluster doesn't know hash tags, which keep the keys of a deployment together",
        is_final=True,
    ),
    "NOPROTO": Explanation("it is too old: it needs Redis 7 or Valkey", is_final=True),
}
_WORDS_OF_CLASSES: Final = {
    "AuthenticationFailureError": "WRONGPASS",
    "AuthenticationRequiredError": "NOAUTH",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "ProtocolError": "NOPROTO",
    "ReadOnlyError": "READONLY",
    "StalePrimaryError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}
# In scripts, of Redis 7.2 or Valkey, and of Redis 7.0.
_ACL_FAILURES: Final = ("ACL failure", "The user executing the script can't")
_CONNECTION_ERRORS: Final = frozenset({"ConnectionError", "ClosedResourceError", "EndOfStream"})


def explained(exc: BaseException) -> Explanation:
    """Return why a command raised `exc`. The text continues "Redis at ...: "."""
    name = type(exc).__name__
    said = _said(exc)
    found = _WORD.match(said)
    word = _WORDS_OF_CLASSES.get(name, found[1] if found else "")
    if word in _EXPLANATIONS:
        return _EXPLANATIONS[word]
    if name in ("MovedError", "AskError"):
        return Explanation(
            f"it is a node of a cluster, and another one has the keys of this deployment:"
            f" {said.split(' ')[-1]}. Give that one's address: all keys have one hash tag, so one"
            " node has them",
            is_final=True,
        )
    if name == "AuthorizationError" or any(text in said for text in _ACL_FAILURES):
        return Explanation(
            f"the ACL of its user forbids what workers need: {said}. {ACL_CURE}",
            is_final=True,
        )
    if name == "UnknownCommandError":
        # Its text repeats the command with its arguments.
        return Explanation(
            "it doesn't know a command that workers need: it is older than Redis 7 and Valkey, or"
            " the command was renamed",
            is_final=True,
        )
    if name == "PrimaryNotFoundError":
        return Explanation("no Sentinel knows its primary", is_outage=True, reconnects=True)
    return _connection_error(exc, name) or Explanation(f"it said {said or name}")


def _connection_error(exc: BaseException, name: str) -> Explanation | None:
    """Return what is wrong with the connection, None if nothing is."""
    causes = list(_causes(exc))
    for cause in causes:
        kind = {each.__name__ for each in type(cause).__mro__}
        if "SSLCertVerificationError" in kind:
            text = f"its certificate isn't trusted: {_said(cause)}. ssl_ca_certs= names a CA's file"
            return Explanation(text, is_outage=True, is_final=True)
        if "SSLError" in kind:
            text = f"TLS fails: {_said(cause)}. Does its port speak TLS? redis:// is without"
            return Explanation(text, is_outage=True)
        if "gaierror" in kind:
            return Explanation("its host name has no address", is_outage=True)
    for cause in causes:
        if isinstance(cause, ConnectionRefusedError):
            return Explanation("it refuses connections: no server runs there", is_outage=True)
        if isinstance(cause, FileNotFoundError):
            return Explanation("there is no such file or socket", is_outage=True)
        if isinstance(cause, PermissionError):
            return Explanation("this user may not open its socket or file", is_outage=True)
    if any(type(cause).__name__ in ("EndOfStream", "BrokenResourceError") for cause in causes):
        text = "it has closed the connection. It was restarted, or speaks TLS only (rediss://)"
        return Explanation(text, is_outage=True)
    if name in _CONNECTION_ERRORS or isinstance(exc, OSError):
        while exc.__cause__ is not None:
            exc = exc.__cause__
        text = f"it cannot be reached: {_said(exc) or type(exc).__name__}"
        return Explanation(text, is_outage=True)
    return None


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it came from, also the parts of groups."""
    seen: set[int] = set()
    left = [exc]
    while left:
        each = left.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            left += each.exceptions
        left += [cause for cause in (each.__cause__, each.__context__) if cause is not None]


def _said(exc: BaseException) -> str:
    text = _UNPRINTABLE.sub("?", str(exc))
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
