"""Resources: functions that return the contents of one URI, or of all URIs of a template.

1. The parameters of a template's function are exactly the template's variables. A parameter whose
   variable may be absent from a URI has a default.
2. A URI whose variables cannot be converted to the annotated types isn't found, not invalid.
3. A missing resource raises `ResourceNotFound`; empty contents would be a success
   (server/resources, Error Handling).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from mcp_core._errors import Fault
from mcp_core._keywords import check_keywords
from mcp_core.protocol.jsonrpc._unencodable import whole_text
from mcp_core.protocol.revisions._config import CacheHint
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.registry._errors import DeclarationError, ResourceNotFound
from mcp_core.registry._validation import (
    check_annotations,
    check_entry,
    check_icons,
    check_meta,
    check_uri,
    plain_name,
)
from mcp_core.registry._visibility import Caller, visibility_of
from mcp_core.registry.functions._content import (
    MEDIA,
    Audio,
    File,
    Image,
    base64_of,
    check_result,
    json_text,
)
from mcp_core.registry.functions._function import Function, inspect_function, runs_in_thread
from mcp_core.registry.functions._signature import InvalidArguments, TextReader
from mcp_core.types import (
    Annotations,
    CacheableResult,
    ErrorData,
    Icon,
    ReadResourceResult,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Result,
)

from ._completion import Completers
from ._invocation import Invocation
from ._last_modified import LastModified, PresentTime, with_last_modified

if TYPE_CHECKING:
    from mcp_core.urls._uri_matcher import UriMatcher

__all__ = ["DirectoryOptions", "ResourceEntry", "ResourceOptions", "TemplateEntry"]


class ResourceOptions(TypedDict, total=False):
    """The options of a declared resource or resource template.

    Keys:
        name: the name for programs; the function's name by default.
        title: the name for people.
        description: the contents; the docstring by default.
        mime_type: the contents' MIME type; for a template, of all its resources.
        size: the size in bytes; not for templates.
        annotations: audience and priority.
        last_modified: when the contents last changed: a `datetime` with a time zone, ISO 8601 text,
            or a function without parameters that returns one of these, or None if it is unknown.
            The function is called for each list, in a worker thread if `thread` is True. If it
            raises, the log has the exception, and the list has no time. Since 2025-06-18.
        icons: icons with `https:` or `data:` URIs.
        meta: the entry's `_meta` in the list.
        cache: how long, and by whom, the contents may be cached (2026-07-28); not at all by
            default.
        visible: as for tools: called with the `Caller` of each request; only those for whom it
            returns True see the resource or template, and can subscribe to it. Such a resource is
            never cached for others.
        thread: True to run a plain `def` in a worker thread, because it blocks. By default the
            server's `threads` decides.
        unchecked: the variables of a template whose values may be any text: with separators, `..`
            or a drive letter. For values that never become a path.
    """

    name: str | None
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    last_modified: LastModified | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Any] | None
    cache: CacheHint | None
    visible: Callable[[Caller], bool] | None
    thread: bool
    unchecked: Sequence[str]


class DirectoryOptions(TypedDict, total=False):
    """The options of a declared directory. All but the name are those of its list and its files.

    Keys:
        name: the name for programs; the directory's by default.
        title: the name for people.
        description: what the directory has.
        annotations: audience and priority.
        icons: icons with `https:` or `data:` URIs.
        meta: the `_meta` of both entries in the lists.
        cache: how long, and by whom, what is read may be cached (2026-07-28); not at all by
            default.
        visible: as for a resource: decides for each `Caller` whether the directory is there.
    """

    name: str | None
    title: str | None
    description: str | None
    annotations: Annotations | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Any] | None
    cache: CacheHint | None
    visible: Callable[[Caller], bool] | None


class _AnyResourceEntry:
    """The common part of `ResourceEntry` and `TemplateEntry`."""

    __slots__ = (
        "cache",
        "function",
        "mime_type",
        "number",
        "present_time",
        "read",
        "thread",
        "visibility",
    )
    number: int  # the number of the declaration on its server

    def __init__(
        self, uri: str, function: Callable[..., Any], options: ResourceOptions, threads: bool
    ) -> None:
        check_keywords(options, ResourceOptions, "@server.resource")
        self.function = found = inspect_function(function, returns=False)
        self.mime_type = options.get("mime_type")
        self.cache = options.get("cache")
        self.visibility = visibility_of(options.get("visible"), f"resource {uri!r}")
        if self.visibility is not None and self.cache is not None and self.cache.scope == "public":
            raise DeclarationError(
                f"{found.label}: a cache with scope 'public' would serve {uri!r} to clients from"
                " whom visible= hides it"
            )
        self.thread = runs_in_thread(found, options.get("thread"), threads)
        self.read = TextReader(found).read
        self.present_time: PresentTime | None = None
        last_modified = options.get("last_modified")
        if callable(last_modified):
            thread = options.get("thread", False)
            self.present_time = PresentTime(last_modified, found.label, thread, threads)

    def _common_fields(self, options: ResourceOptions) -> dict[str, Any]:
        """Return the fields that `Resource` and `ResourceTemplate` share."""
        found = self.function
        name = plain_name(options.get("name") or found.name)
        if not name:
            raise DeclarationError(f"{found.label} has no name of its own; give one with name=")
        return {
            "name": name,
            "title": options.get("title"),
            "description": options.get("description") or found.description or None,
            "mime_type": self.mime_type,
            "annotations": with_last_modified(
                check_annotations(options.get("annotations"), found.label),
                options.get("last_modified"),
                found.label,
            ),
            "icons": check_icons(options.get("icons"), found.label),
            "meta": check_meta(options.get("meta"), found.label),
        }


class ResourceEntry(_AnyResourceEntry):
    """A declared resource with a fixed URI.

    Raises:
        DeclarationError: the resource cannot be served.
    """

    __slots__ = ("_resource", "uri")

    def __init__(
        self, uri: str, function: Callable[..., Any], options: ResourceOptions, threads: bool
    ) -> None:
        super().__init__(uri, function, options, threads)
        self.uri = uri
        check_uri(uri, self.function.label)
        if options.get("unchecked"):
            raise DeclarationError(f"{self.function.label}: {uri!r} has no variables to leave out")
        if self.function.parameters:
            names = ", ".join(p.name for p in self.function.parameters)
            raise DeclarationError(
                f"{self.function.label} takes {names}, but {uri!r} has no variables"
            )
        self._resource = Resource(uri=uri, size=options.get("size"), **self._common_fields(options))
        check_entry(self._resource, self.function.label)

    def __repr__(self) -> str:
        return f"<resource {self.uri!r}: {self.function.label}>"

    def list_entry(self, dialect: Dialect) -> Resource:
        """Return the entry of `resources/list`."""
        return self._resource

    def prepare(self, uri: str, dialect: Dialect) -> Invocation:
        """Return the call to make. `uri` is the resource's own."""
        return ResourceInvocation(self, {}, dialect, self.uri)


class TemplateEntry(_AnyResourceEntry):
    """A declared resource template.

    Raises:
        DeclarationError: the template cannot be served.
    """

    __slots__ = ("_matcher", "_normal_matcher", "_template", "completers", "uri")

    def __init__(
        self, template: str, function: Callable[..., Any], options: ResourceOptions, threads: bool
    ) -> None:
        # On first use: most servers have no template.
        from mcp_core.urls._uri_matcher import UriMatcher
        from mcp_core.urls._uri_template import InvalidUriTemplate, UriTemplate

        super().__init__(template, function, options, threads)
        self.uri = template
        unchecked = options.get("unchecked", ())
        if isinstance(unchecked, str):
            raise DeclarationError(f"unchecked is a list of names, not one text: [{unchecked!r}]")
        try:
            parsed = UriTemplate(template)
            check_uri(template.partition("{")[0], self.function.label)
            self._matcher = UriMatcher(parsed, unchecked)
            self._normal_matcher: UriMatcher | None = None
        except InvalidUriTemplate as exc:
            raise DeclarationError(str(exc)) from None
        _check_variables(self._matcher, self.function)
        if options.get("size") is not None:
            raise DeclarationError(
                f"{self.function.label}: a template stands for many resources and has no size"
            )
        self.completers = Completers(self.function)
        self._template = ResourceTemplate(uri_template=template, **self._common_fields(options))
        check_entry(self._template, self.function.label)

    def __repr__(self) -> str:
        return f"<resource template {self.uri!r}: {self.function.label}>"

    def list_entry(self, dialect: Dialect) -> ResourceTemplate:
        """Return the entry of `resources/templates/list`."""
        return self._template

    def find_error(self, uri: str) -> str | None:
        """Return why `uri`, which has the form of this template, is refused. None if it isn't."""
        return self._matcher.find_error(uri)

    def prepare(self, uri: str, dialect: Dialect) -> Invocation | None:
        """Return the call to make, or None if `uri` doesn't match this template."""
        values = self._matcher.match(uri)
        if values is None:
            return None
        try:
            return ResourceInvocation(self, self.read(values), dialect, uri)
        except InvalidArguments:
            return None

    def matches(self, uri: str) -> bool:
        """Return True if `uri` is one of this template's resources, with values of its types."""
        values = self._matcher.match(uri)
        if values is None:
            return False
        try:
            self.read(values)
        except InvalidArguments:
            return False
        return True

    def respell(self, normal: str) -> str | None:
        """Return a URI in normal form as this template spells it, or None if it doesn't match."""
        if self._normal_matcher is None:
            self._normal_matcher = self._make_normal_matcher()
        values = self._normal_matcher.match(normal)
        return None if values is None else self._matcher.template.expand(values)

    def _make_normal_matcher(self) -> UriMatcher:
        from mcp_core.urls._normal_uri import normal_template
        from mcp_core.urls._uri_matcher import UriMatcher
        from mcp_core.urls._uri_template import UriTemplate

        text = normal_template(self.uri)
        if text is None or text == self.uri:
            return self._matcher
        return UriMatcher(UriTemplate(text), self._matcher.unchecked)


def _check_variables(matcher: UriMatcher, function: Function) -> None:
    """Raise `DeclarationError` unless variables and parameters are the same."""
    template = matcher.template
    parameters = {p.wire_name: p for p in function.parameters}
    for name in template.variables:
        if name not in parameters:
            raise DeclarationError(
                f"{function.label} has no parameter for {{{name}}} of {template.text!r}"
            )
        if name in matcher.optional and parameters[name].required:
            raise DeclarationError(
                f"{function.label}: a URI may leave {name!r} out, so it needs a default"
            )
    for name in parameters.keys() - set(template.variables):
        raise DeclarationError(f"{function.label}: {name!r} is no variable of {template.text!r}")


class ResourceInvocation(Invocation):
    """One read of a resource."""

    __slots__ = ("_cache", "_mime_type", "uri")

    def __init__(
        self, entry: _AnyResourceEntry, arguments: dict[str, Any], dialect: Dialect, uri: str
    ) -> None:
        super().__init__(entry.function, entry.thread, arguments, dialect)
        self._cache = entry.cache
        self._mime_type = entry.mime_type
        self.uri = uri

    def result(self, value: Any) -> Result:
        if isinstance(value, Result):
            check_result(value)
            return self._with_cache_hint(value) if isinstance(value, CacheableResult) else value
        # A list without any of these is one value, which is sent as JSON.
        several = isinstance(value, list | tuple) and any(
            isinstance(item, (ResourceContents, bytes, *MEDIA)) for item in value
        )
        contents = [self._as_contents(item) for item in (value if several else [value])]
        result = ReadResourceResult(contents=contents)
        check_result(result)
        return self._with_cache_hint(result)

    def _with_cache_hint(self, result: CacheableResult) -> CacheableResult:
        return result if self._cache is None else self._cache.apply_to(result)

    def _as_contents(self, value: Any) -> ResourceContents:
        if value is None:
            raise TypeError("for a missing resource raise ResourceNotFound; do not return None")
        if isinstance(value, ResourceContents):
            return value
        if isinstance(value, File):
            return value.contents()
        if isinstance(value, Image | Audio):
            return ResourceContents(
                uri=self.uri, mime_type=value.mime_type, blob=base64_of(value.data)
            )
        if isinstance(value, bytes | bytearray | memoryview):
            mime_type = self._mime_type or "application/octet-stream"
            return ResourceContents(uri=self.uri, mime_type=mime_type, blob=base64_of(value))
        mime_type = self._mime_type or (
            "text/plain" if isinstance(value, str) else "application/json"
        )
        return ResourceContents(uri=self.uri, mime_type=mime_type, text=json_text(value))

    def _exception_response(self, exc: BaseException, reference: str) -> Result | ErrorData:
        if isinstance(exc, ResourceNotFound):
            return ErrorData(
                self.dialect.codes[Fault.RESOURCE_NOT_FOUND],
                whole_text(str(exc)),
                {"uri": self.uri},
            )
        return super()._exception_response(exc, reference)
