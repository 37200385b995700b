"""The scopes that requests need: of every request, and by method, tool, prompt and resource.

1. A completion needs the scopes of its prompt or resource template: it shows what they contain.
2. A URI is compared in normal form, and then decoded as well as written out. The registry finds
   resources by their normal form, and decodes `%73` to `s` in the values of a template, so all
   these spellings may lead to the same resource.
3. A resource that several entries name needs the scopes of all of them, and a request for very many
   resources needs the scopes of all resources.

Sources: 2026-07-28 basic/authorization, Scope Challenge Handling; RFC 6749, section 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.types import PromptReference
from mcp_core.urls._normal_uri import normal_template, normal_uri
from mcp_core.urls._uri_matcher import UriMatcher
from mcp_core.urls._uri_template import RESERVED, UriTemplate

__all__ = ["RequiredScopes", "Scopes", "checked_list", "checked_scopes", "is_resource_scope"]

# The scopes that a method, tool, prompt or resource needs, by its name or URI.
Scopes: TypeAlias = Mapping[str, Iterable[str]] | Callable[[str], Iterable[str]]

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, 3.3: scope-token
# A peer may subscribe to as many URIs by default (`Limits.uris`). To compare many more of them with
# templates would take seconds.
_MAX_COMPARED: Final = 1024
_EXPRESSION: Final = re.compile(r"(\{[^{}]*\})")


class RequiredScopes:
    """The scopes that requests need. See `OAuthResourceServer` for the arguments.

    Raises:
        ValueError: a scope is invalid, or a URI template.
    """

    __slots__ = (
        "_all_resources",
        "_by_method",
        "_by_prompt",
        "_by_resource",
        "_by_tool",
        "_named",
        "always",
    )

    def __init__(
        self,
        scopes: Iterable[str],
        *,
        methods: Scopes | None,
        tools: Scopes | None,
        prompts: Scopes | None,
        resources: Scopes | None,
    ) -> None:
        self.always = checked_scopes(scopes)
        self._by_method = _by_name(methods)
        self._by_tool = _by_name(tools)
        self._by_prompt = _by_name(prompts)
        self._by_resource = _by_uri(resources)
        self._named = {"tool": tools, "prompt": prompts, "method": methods}
        # The scopes of all resources, if they are known.
        self._all_resources: tuple[str, ...] | None = None
        if isinstance(resources, Mapping):
            self._all_resources = checked_scopes(chain.from_iterable(resources.values()))

    def __repr__(self) -> str:
        return f"<RequiredScopes, always {' '.join(self.always) or 'none'}>"

    def check_names(
        self, tools: Collection[str], prompts: Collection[str], methods: Collection[str]
    ) -> None:
        """Raise `ValueError` for an entry whose name doesn't exist.

        The arguments are as for `ProtectedResource.check_names`.
        """
        known = {
            "tool": tools,
            "prompt": prompts,
            "method": {*(row.name for row in METHODS), *methods},
        }
        for kind, scopes in self._named.items():
            if isinstance(scopes, Mapping):
                for name in scopes:
                    if name not in known[kind]:
                        raise ValueError(_unknown_name(kind, name, known[kind]))

    def of(self, method: str | None, params: Any = None) -> tuple[str, ...]:
        """Return all scopes that a message needs, each once.

        `method` is None for a message that needs no more than any request does. `params` are its
        decoded params.
        """
        needed = list(self.always)
        if method is not None:
            needed += self._by_method(method)
        match method:
            case "tools/call":
                needed += self._by_tool(params.name)
            case "prompts/get":
                needed += self._by_prompt(params.name)
            case "completion/complete" if isinstance(params.ref, PromptReference):
                needed += self._by_prompt(params.ref.name)
            case "completion/complete":
                needed += self._by_resource(params.ref.uri)
            case "resources/read" | "resources/subscribe":
                needed += self._by_resource(params.uri)
            case "subscriptions/listen":
                uris = params.notifications.resource_subscriptions or ()
                if len(uris) > _MAX_COMPARED and self._all_resources is not None:
                    needed += self._all_resources
                else:
                    for uri in uris:
                        needed += self._by_resource(uri)
        return tuple(dict.fromkeys(needed))


def _unknown_name(kind: str, name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # on first use: only for the error

    similar = get_close_matches(name, known)
    hint = f": did you mean {similar[0]!r}?" if similar else "."
    return (
        f"{kind}_scopes has an entry for {name!r}, and the server has no such {kind}{hint} The"
        f" entry would protect nothing. For a {kind} that is declared later, give a function in"
        " place of the mapping"
    )


def is_resource_scope(scope: str) -> bool:
    """Return True if `scope` is a valid scope of a resource."""
    # `offline_access` concerns a client and its authorization server (2026-07-28). It permits no
    # operation here.
    return _SCOPE.fullmatch(scope) is not None and scope != "offline_access"


def checked_list(values: Iterable[str]) -> Iterable[str]:
    """Return `values`. Raise `ValueError` for a single text, which is iterable too."""
    if isinstance(values, str):
        raise ValueError(f"expected a list of texts, not a single text: write [{values!r}]")
    return values


def checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return each scope once. Raise `ValueError` for an invalid one."""
    found = tuple(dict.fromkeys(checked_list(scopes)))
    for scope in found:
        if not is_resource_scope(scope):
            form = "printable ASCII without spaces, quotes and backslashes, and not offline_access"
            raise ValueError(f"{scope!r} is not a valid scope: {form}")
    return found


def _by_name(scopes: Scopes | None) -> Callable[[str], Iterable[str]]:
    """Return a function from a name to its scopes."""
    if scopes is None:
        return _no_scopes
    if isinstance(scopes, Mapping):
        table = {name: checked_scopes(needed) for name, needed in scopes.items()}
        return lambda name: table.get(name, ())
    function = scopes
    return lambda name: checked_list(function(name))


def _by_uri(scopes: Scopes | None) -> Callable[[str], Iterable[str]]:
    """Return a function from a URI, or the text of a template, to its scopes."""
    if not isinstance(scopes, Mapping):
        return _by_name(scopes)
    fixed: dict[str, tuple[str, ...]] = {}
    templates = []
    for uri, needed in scopes.items():
        checked = checked_scopes(needed)
        if "{" in uri:
            normal = normal_template(uri) or uri
            forms = {uri: None, normal: None, _canonical(normal): None}
            templates.append((forms, [UriMatcher(UriTemplate(form)) for form in forms], checked))
        else:
            for each in _decoded(uri):
                fixed[each] = (*fixed.get(each, ()), *checked)

    def look_up(uri: str) -> Iterable[str]:
        needed = [scope for each in _decoded(uri) for scope in fixed.get(each, ())]
        if templates:
            normal = normal_uri(uri) or uri
            # Written out as it is, the URI matches a declaration's template; decoded it may be a
            # resource that another template leads to.
            spellings = {uri, normal, normal_template(uri), _canonical(normal)}
            for forms, matchers, more in templates:
                if not spellings.isdisjoint(forms) or any(
                    matcher.has_form(each) for matcher in matchers for each in spellings if each
                ):
                    needed += more
        return needed

    return look_up


def _decoded(uri: str) -> Iterable[str]:
    return dict.fromkeys((unquote(uri), unquote(normal_uri(uri) or uri)))


def _canonical(uri: str) -> str:
    """Return a URI or template in which only the necessary characters are percent-encoded."""
    pieces = _EXPRESSION.split(uri) if "{" in uri else [uri]
    safe = f"-._~{RESERVED}"
    pieces[::2] = [quote(unquote(piece), safe=safe, errors="replace") for piece in pieces[::2]]
    return "".join(pieces)


def _no_scopes(name: str) -> Iterable[str]:
    return ()
