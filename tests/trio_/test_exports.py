"""The names of `mcp_trio`: those that its documents need, and no others."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import mcp_asyncio_shim
import mcp_core
import mcp_core.adapters
import mcp_core.http
import mcp_core.registry
import mcp_core.runtime
import mcp_core.types
import mcp_core.urls
import mcp_trio

if TYPE_CHECKING:
    from types import ModuleType

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ["README.md", *(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
SUBPACKAGES: Final = {path.parent.name for path in ROOT.glob("mcp_trio/*/__init__.py")}
# What a docstring may name although a user of `mcp_trio` does not need it.
BELOW: Final = {
    "AbstractClient",  # the base of `Client`
    "ClientConfigOptions",  # the base of `ClientOptions`
    "Config",  # these three are for drivers
    "Connection",
    "Service",
    "Invocation",
}


@pytest.mark.parametrize("page", PAGES)
def test_page_names_only_exported_names(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"\bmcp_trio\.(?!md\b)([A-Za-z_]\w*)", text))
    for block in re.findall(r"from mcp_trio import ([^\n]+)", text):
        named |= {name.split(" as ")[0].strip(" ()") for name in block.split(",")}
    assert named - SUBPACKAGES <= set(mcp_trio.__all__)


@pytest.mark.parametrize("name", sorted(mcp_trio.__all__))
def test_docstring_names_are_exported(name: str) -> None:
    known = {
        word
        for module in (mcp_core, mcp_core.registry, mcp_core.runtime)
        for word in module.__all__
    }
    found = getattr(mcp_trio, name)
    texts = [inspect.getdoc(found) or ""]
    if inspect.isclass(found):
        members = [key for key in dir(found) if not key.startswith("_")]
        texts += [inspect.getdoc(getattr(found, key, None)) or "" for key in members]
    words = {word for text in texts for word in re.findall(r"\b[A-Z]\w+", text)}
    classes = {word for word in words & known if not word.isupper()}
    assert classes - BELOW <= set(mcp_trio.__all__)


def test_types_can_be_imported_from_their_module() -> None:
    from mcp_trio.types import Tool

    assert Tool is mcp_core.types.Tool is mcp_trio.types.Tool
    assert set(mcp_core.types.__all__) <= vars(mcp_trio.types).keys()


def test_dir_is_all_of_the_public_names() -> None:
    assert dir(mcp_trio) == sorted(mcp_trio.__all__)
    assert all(hasattr(mcp_trio, name) for name in mcp_trio.__all__)
    assert not [name for name in mcp_trio.__all__ if name.startswith("_") and name != "__version__"]


@pytest.mark.parametrize(
    "package",
    [mcp_trio, mcp_asyncio_shim, mcp_core.adapters, mcp_core.http, mcp_core.runtime, mcp_core.urls],
)
def test_names_on_first_use_are_declared_and_kept(package: ModuleType) -> None:
    assert set(package.__all__) >= {name for names in package._MODULES.values() for name in names}
    for name in package.__all__:
        assert getattr(package, name) is vars(package)[name]
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'x'"):
        package.x  # noqa: B018


@pytest.mark.parametrize(("package", "count"), [("mcp_core.runtime", 2), ("mcp_core.processes", 1)])
def test_exceptions_of_a_package_show_its_path(package: str, count: int) -> None:
    module = importlib.import_module(package)
    found = [getattr(module, name) for name in module.__all__]
    errors = [each for each in found if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) == count
    for error in errors:
        assert error.__module__ == package
        assert pickle.loads(pickle.dumps(error)) is error


def test_exceptions_show_and_pickle_by_their_public_path() -> None:
    found = [getattr(mcp_trio, name) for name in mcp_trio.__all__]
    errors = [each for each in found if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) >= 12
    assert not [error for error in errors if "._" in error.__module__]
    for error in errors:
        assert pickle.loads(pickle.dumps(error)) is error
    text = "".join(traceback.format_exception_only(mcp_trio.ToolError("no")))
    assert text == "mcp_core.ToolError: no\n"
