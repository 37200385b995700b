"""The URIs that a request names, as the server has declared them.

A client may spell a URI in another way (`UriSpellings`). What is found is what was declared, so a
check of the request has to see that spelling: else a scope or a middleware guards another text than
the one that is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core.types import PromptReference

if TYPE_CHECKING:
    from ._config import DeclaredUris

__all__ = ["NAMES_URI", "with_declared_uris"]

# The requests whose handlers and middleware get the URI as it is declared.
NAMES_URI: Final = frozenset({"resources/read", "completion/complete"})


def with_declared_uris(method: str, params: Any, declared: DeclaredUris, most_uris: int = 1) -> Any:
    """Return `params`, the decoded params of `method`, with their URIs as they are declared.

    It is `params` itself if the client spells them like that, or names no resource. So it is if
    there are more than `most_uris`: such a request is refused.
    """
    match method:
        case "resources/read" | "resources/subscribe":
            uri = declared.declared_uri(params.uri)
            return params if uri == params.uri else replace(params, uri=uri)
        case "completion/complete" if not isinstance(params.ref, PromptReference):
            text = declared.declared_template(params.ref.uri)
            ref = params.ref
            return params if text == ref.uri else replace(params, ref=replace(ref, uri=text))
        case "subscriptions/listen":
            wanted = params.notifications
            given = wanted.resource_subscriptions or []
            if len(given) > most_uris:
                return params
            uris = [declared.declared_uri(uri) for uri in given]
            if uris == given:
                return params
            return replace(params, notifications=replace(wanted, resource_subscriptions=uris))
    return params
