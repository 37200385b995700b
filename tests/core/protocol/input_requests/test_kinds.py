"""Input requests: which are valid, which capabilities they need, and valid responses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core import Fault, LocalProtocolError, McpError, Method, RemoteProtocolError
from mcp_core import types as t
from mcp_core.protocol.input_requests._kinds import (
    INPUT_REQUESTS,
    check_input_request,
    check_response,
    find_error,
    input_request_of,
    missing_capabilities,
    require_capabilities,
    response_to_error,
)
from mcp_core.protocol.revisions._methods import INPUTS, METHODS
from tests.core.server_requests import (
    ALICE,
    ANSWER_TO,
    CHOICES,
    ELICITS,
    EVERYTHING,
    FILES,
    FORM,
    GAVE,
    GAVE_2,
    MODEL,
    NAME,
    NOTHING,
    PAGE,
    ROOTS,
    SAID,
    SEVERAL,
    TEXT,
    USE,
    USE_2,
    WITH_CHOICE,
    WITH_TOOLS,
    client,
    dialogue,
    form,
    offers,
    page,
)


@pytest.mark.parametrize("row", INPUTS, ids=lambda row: row.name)
def test_input_request_rows_match_legacy_requests(row: Method) -> None:
    kind = next(kind for kind, found in INPUT_REQUESTS.items() if found is row)
    assert kind.method == row.name
    assert row.result is type(ANSWER_TO[kind])
    params = (
        next(question for question in (NAME, MODEL, ROOTS) if type(question) is kind).params
        or t.ListRootsParams()
    )
    assert type(params) is row.params
    assert input_request_of(row.name, params) == kind(params)  # type: ignore[arg-type]
    legacy = next(other for other in METHODS if other.name == row.name)
    assert (legacy.params, legacy.result, legacy.needs) == (row.params, row.result, row.needs)


@pytest.mark.requirement("MRTR-5", "ELIC-2", "ELIC-5", "CAP-10")
@pytest.mark.parametrize(
    ("question", "declared", "missing"),
    [
        (NAME, NOTHING, {"elicitation": {}}),
        (NAME, offers(elicitation=ELICITS()), {}),
        (NAME, offers(elicitation=ELICITS(form={})), {}),
        (NAME, offers(elicitation=ELICITS(form={}, url={})), {}),
        (NAME, offers(elicitation=ELICITS(url={})), {"elicitation": {"form": {}}}),
        (FORM, offers(elicitation=ELICITS()), {}),
        (FORM, offers(elicitation=ELICITS(url={})), {"elicitation": {"form": {}}}),
        (PAGE, NOTHING, {"elicitation": {"url": {}}}),
        (PAGE, offers(elicitation=ELICITS()), {"elicitation": {"url": {}}}),
        (PAGE, offers(elicitation=ELICITS(form={})), {"elicitation": {"url": {}}}),
        (PAGE, offers(elicitation=ELICITS(url={})), {}),
        (MODEL, offers(elicitation=ELICITS()), {"sampling": {}}),
        (MODEL, offers(sampling=t.SamplingCapability()), {}),
        (WITH_TOOLS, NOTHING, {"sampling": {"tools": {}}}),
        (WITH_TOOLS, offers(sampling=t.SamplingCapability()), {"sampling": {"tools": {}}}),
        (WITH_TOOLS, offers(sampling=t.SamplingCapability(tools={})), {}),
        (
            WITH_CHOICE,
            offers(sampling=t.SamplingCapability(context={})),
            {"sampling": {"tools": {}}},
        ),
        (ROOTS, NOTHING, {"roots": {}}),
        (ROOTS, offers(roots=t.RootsCapability()), {}),
    ],
)
def test_kind_without_client_capability_is_rejected(
    question: Any, declared: t.ClientCapabilities, missing: Any
) -> None:
    """Server and client check the same table: one tells what is missing, one refuses."""
    assert missing_capabilities([question], declared) == missing
    peer = client(capabilities=declared)
    if not missing:
        require_capabilities([question], peer)
        check_input_request(question, declared)
        return
    with pytest.raises(McpError) as caught:
        require_capabilities([question], peer)
    assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": missing})
    assert next(iter(missing)) in str(caught.value)
    with pytest.raises(RemoteProtocolError, match="did not declare") as refused:
        check_input_request(question, declared)
    assert refused.value.fault is Fault.INVALID_PARAMS


def test_require_names_all_missing_capabilities() -> None:
    with pytest.raises(McpError) as caught:
        require_capabilities(
            [NAME, PAGE, MODEL, WITH_TOOLS], client(capabilities=offers(roots=t.RootsCapability()))
        )
    needed: Any = {"elicitation": {"url": {}}, "sampling": {"tools": {}}}
    assert caught.value.data == {"requiredCapabilities": needed}


@pytest.mark.requirement("ELIC-6", "ELIC-7", "ELIC-8", "ELIC-13", "SAMP-7", "SAMP-8", "SAMP-9")
@pytest.mark.parametrize(
    ("question", "words"),
    [
        (ROOTS, None),
        (NAME, None),
        (form(), None),
        (form(a={"type": "string", "format": "email", "maxLength": 3, "default": "x"}), None),
        (
            form(
                a={"type": "number", "minimum": 0, "maximum": 1.5},
                b={"type": "integer"},
                c={"type": "boolean"},
            ),
            None,
        ),
        (form(a={"type": "string", "enum": ["x"], "enumNames": ["X"]}, b=CHOICES), None),
        (
            form(
                a={"type": "array", "items": {"type": "string", "enum": ["x"]}, "minItems": 1},
                b=SEVERAL,
            ),
            None,
        ),
        (form(a={"type": "object", "properties": {}}), "flat object of simple fields"),
        (form(a={"type": "array", "items": {"type": "object"}}), "flat object"),
        (form(a={"type": "null"}), "flat object"),
        (form(a={"enum": [1]}), "flat object"),
        (
            t.ElicitRequest(t.ElicitParams(message="m", requested_schema={"type": "string"})),
            "flat object",
        ),
        (
            t.ElicitRequest(t.ElicitParams(message="m", requested_schema={"type": "object"})),
            "flat object",
        ),
        (page("https://example.com/a?b=c#d"), None),
        (page("http://[::1]:8000/"), None),
        (page("HTTPS://example.com"), None),
        (page("https://example.com?a=b"), None),
        (page("https://user:secret@example.com/"), "no http"),
        (page("https://example.com@evil.example/"), "no http"),
        (page("https://example.com\\@evil.example/"), "no http"),
        (page("--flag https://example.com/"), "no http"),
        (page(""), "no http or https URL"),
        (page("example.com"), "no http"),
        (page("https:///path"), "no http"),
        (page("file:///etc/passwd"), "no http"),
        (page("javascript:alert(1)"), "no http"),
        (page("https://[::1/"), "no http"),
        (page("https://example.com/a b"), "no http"),
        (page("https://example.com/\n"), "no http"),
        (page("https://exam\tple.com/"), "no http"),
        (page("https://example.com/\x7f"), "no http"),
        (page("https://exämple.com/"), "no http"),
        (page("http://2130706433/"), "it is a number, but no plain IP address"),
        (page("https://%65xample.com/"), "it is percent-encoded"),
        (page("https://xn--a/"), "Punycode .xn--. is invalid"),
        (page("https://example.com/" + "a" * 8192), "it is longer than 8192 characters"),
        (dialogue(), None),
        (dialogue(TEXT, TEXT, [TEXT, TEXT]), None),
        (dialogue(TEXT, [TEXT, USE, USE_2], [GAVE_2, GAVE]), None),
        (dialogue(TEXT, USE, GAVE, USE_2, GAVE_2, TEXT), None),
        (dialogue(TEXT, USE, [GAVE, TEXT]), "messages.2. mixes tool results with other content"),
        (dialogue(TEXT, USE, TEXT), "messages.2. does not answer"),
        (dialogue(TEXT, [USE, USE_2], GAVE), "does not answer"),
        (dialogue(TEXT, USE, [GAVE, GAVE]), "does not answer"),
        (dialogue(TEXT, USE, GAVE_2), "does not answer"),
        (dialogue(GAVE), "messages.0. does not answer"),
        (dialogue(TEXT, USE), "no results follow"),
        (dialogue(USE, GAVE), "messages.0.: assistants use tools"),
        (
            t.CreateMessageRequest(
                replace(
                    MODEL.params,
                    messages=[
                        t.SamplingMessage("assistant", USE),
                        t.SamplingMessage("assistant", GAVE),
                    ],
                )
            ),
            "messages.1.: assistants",
        ),
    ],
)
def test_input_request_invalid_is_rejected(question: Any, words: str | None) -> None:
    if words is None:
        check_input_request(question, EVERYTHING)
        require_capabilities([question], client())
        return
    with pytest.raises(LocalProtocolError, match=words):
        require_capabilities([question], client())
    with pytest.raises(RemoteProtocolError, match=words) as caught:
        check_input_request(question, EVERYTHING)
    assert caught.value.fault is Fault.INVALID_PARAMS


@pytest.mark.requirement("ELIC-10")
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ({"type": "boolean"}, False, None),
        ({"type": "boolean"}, 0, "is not true or false"),
        ({"type": "string"}, "", None),
        ({"type": "string"}, 1, "is no text"),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "ab", None),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "äöü", None),
        ({"type": "string", "minLength": 2}, "a", "is less than 2 characters"),
        ({"type": "string", "maxLength": 3}, "abcd", "is more than 3 characters"),
        ({"type": "string", "enum": ["a", "b"]}, "b", None),
        ({"type": "string", "enum": ["a", "b"]}, "c", "none of the choices"),
        ({"type": "string", "enum": []}, "c", "none of the choices"),
        (CHOICES, "a", None),
        (CHOICES, "A", "none of the choices"),
        (SEVERAL, ["a"], None),
        (SEVERAL, [], None),
        (SEVERAL, "a", "is no list"),
        (SEVERAL, ["a", "A"], "none of the choices"),
        (SEVERAL, ["a", "a", "a"], "is more than 2 items"),
        ({"type": "array", "items": {"enum": ["x"]}, "minItems": 1}, ["x"], None),
        ({"type": "array", "items": {"enum": ["x"]}, "minItems": 1}, [], "is less than 1 items"),
        ({"type": "array", "items": {}}, ["x"], "none of the choices"),
        ({"type": "number"}, 1.5, None),
        ({"type": "number"}, 2, None),
        ({"type": "number"}, "2", "is no number"),
        ({"type": "number"}, True, "is no number"),
        ({"type": "number", "minimum": 1.5}, 1.4, "is less than 1.5$"),
        ({"type": "integer", "maximum": 3}, 3.0, None),
        ({"type": "integer", "maximum": 3}, 4, "is more than 3$"),
        ({"type": "integer"}, 3.5, "is no integer"),
    ],
)
def test_form_content_is_checked_against_schema(field: Any, value: Any, words: str | None) -> None:
    question = form(f=field)
    answer = t.ElicitResult(action="accept", content={"f": value, "more": 1})
    if words is None:
        assert find_error(question, answer) is None
        assert check_response(question, answer) is answer
    else:
        assert re.search(words, find_error(question, answer) or "")
        with pytest.raises(LocalProtocolError, match=words):
            check_response(question, answer)


@pytest.mark.requirement("ELIC-9", "ROOT-3")
@pytest.mark.parametrize(
    ("question", "answer", "sent"),
    [
        (NAME, ALICE, ALICE),
        (NAME, t.ElicitResult(action="decline"), t.ElicitResult(action="decline")),
        (NAME, replace(ALICE, action="cancel"), t.ElicitResult(action="cancel")),
        (PAGE, t.ElicitResult(action="accept"), t.ElicitResult(action="accept")),
        (PAGE, ALICE, t.ElicitResult(action="accept")),
        (
            form(a={"type": "boolean"}),
            t.ElicitResult(action="accept"),
            t.ElicitResult(action="accept"),
        ),
        (NAME, t.ElicitResult(action="accept"), "content.name is missing"),
        (NAME, SAID, "elicitation/create is not answered with CreateMessageResult"),
        (MODEL, SAID, SAID),
        (MODEL, ALICE, "not answered with ElicitResult"),
        (ROOTS, FILES, FILES),
        (ROOTS, t.ListRootsResult(roots=[]), t.ListRootsResult(roots=[])),
        (
            ROOTS,
            t.ListRootsResult(roots=[t.Root("file:///a"), t.Root("https://a")]),
            "'https://a' is no file:// URI",
        ),
        (ROOTS, None, "not answered with NoneType"),
    ],
)
def test_as_answer_checks_and_strips_response(question: Any, answer: Any, sent: Any) -> None:
    if isinstance(sent, str):
        with pytest.raises(LocalProtocolError, match=sent):
            check_response(question, answer)
    else:
        assert check_response(question, answer) == sent


def test_misfit_without_form_content_finds_nothing() -> None:
    assert find_error(MODEL, SAID) is None
    assert find_error(PAGE, t.ElicitResult(action="accept")) is None
    assert find_error(NAME, t.ElicitResult(action="decline")) is None
    assert find_error(NAME, SAID) is None


def test_refusal_cancels_elicitation_or_raises() -> None:
    error = McpError(-1, "the user said no")
    for question in (NAME, PAGE):
        assert response_to_error(question, error) == t.ElicitResult(action="cancel")
    for other in (MODEL, ROOTS):
        with pytest.raises(McpError) as caught:
            response_to_error(other, error)
        assert caught.value is error
