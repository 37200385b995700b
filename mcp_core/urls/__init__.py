"""URLs, addresses and URI templates: one reader and one policy for all parts and the drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._addresses import MAX_URL as MAX_URL
    from ._addresses import covers_url as covers_url
    from ._addresses import find_url_error as find_url_error
    from ._addresses import is_internal_name as is_internal_name
    from ._addresses import is_local_host as is_local_host
    from ._addresses import is_loopback_host as is_loopback_host
    from ._addresses import is_loopback_url as is_loopback_url
    from ._addresses import is_private_address as is_private_address
    from ._addresses import is_public_address as is_public_address
    from ._addresses import may_fetch as may_fetch
    from ._addresses import may_fetch_named as may_fetch_named
    from ._addresses import origin_of as origin_of
    from ._addresses import origin_text as origin_text
    from ._addresses import same_origin_redirect as same_origin_redirect
    from ._elicitation_url import ElicitationUrl as ElicitationUrl
    from ._transports import URL_TRANSPORTS as URL_TRANSPORTS
    from ._transports import UrlTransport as UrlTransport
    from ._transports import http_url as http_url
    from ._transports import url_transport as url_transport
    from ._uri_matcher import UriMatcher as UriMatcher
    from ._uri_template import InvalidUriTemplate as InvalidUriTemplate
    from ._uri_template import UriTemplate as UriTemplate
    from ._url import DEFAULT_PORTS as DEFAULT_PORTS
    from ._url import Url as Url
    from ._url import effective_port as effective_port
    from ._url import redacted_url as redacted_url

__all__ = [
    "DEFAULT_PORTS",
    "MAX_URL",
    "URL_TRANSPORTS",
    "ElicitationUrl",
    "InvalidUriTemplate",
    "UriMatcher",
    "UriTemplate",
    "Url",
    "UrlTransport",
    "covers_url",
    "effective_port",
    "find_url_error",
    "http_url",
    "is_internal_name",
    "is_local_host",
    "is_loopback_host",
    "is_loopback_url",
    "is_private_address",
    "is_public_address",
    "may_fetch",
    "may_fetch_named",
    "origin_of",
    "origin_text",
    "redacted_url",
    "same_origin_redirect",
    "url_transport",
]

_MODULES = {
    "._addresses": (
        "MAX_URL",
        "covers_url",
        "find_url_error",
        "is_internal_name",
        "is_local_host",
        "is_loopback_host",
        "is_loopback_url",
        "is_private_address",
        "is_public_address",
        "may_fetch",
        "may_fetch_named",
        "origin_of",
        "origin_text",
        "same_origin_redirect",
    ),
    "._elicitation_url": ("ElicitationUrl",),
    "._transports": (
        "URL_TRANSPORTS",
        "UrlTransport",
        "http_url",
        "url_transport",
    ),
    "._uri_matcher": ("UriMatcher",),
    "._uri_template": (
        "InvalidUriTemplate",
        "UriTemplate",
    ),
    "._url": (
        "DEFAULT_PORTS",
        "Url",
        "effective_port",
        "redacted_url",
    ),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
