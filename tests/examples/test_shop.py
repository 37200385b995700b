"""`examples/shop.py`: tools and resources in both eras, the database, and the program itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from tests.examples.pages import EXAMPLES, ROOT
from tests.examples.programs import command, load
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_core.types import ElicitParams

BOTH_ERAS = ["2025-11-25", "2026-07-28"]
ADDRESS = {"address": "1 Canal Street"}
CSV = "sku,name,price,stock\nassam,Assam,400,3\noolong,Oolong,450,5\n"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("SHOP_DATABASE", raising=False)
    return load("shop.py")


async def fill_order(client: mcp_trio.Client, quantity: int = 2) -> None:
    """Import two products, and create order 1 with one of them."""
    await client.call_tool("import_products", {"text": CSV})
    await client.call_tool("create_order", {"customer": "Ada"})
    line = {"number": 1, "sku": "oolong", "quantity": quantity}
    assert not (await client.call_tool("add_to_order", line)).is_error


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_shop_order_confirmed_leaves_stock_and_notifies(shop: Any, version: str) -> None:
    """One customer's whole visit: import, search, order, confirmation, and both changes."""
    asked: list[str] = []
    steps: list[tuple[float, float | None, str | None]] = []

    def confirm(params: ElicitParams) -> dict[str, Any]:
        asked.append(params.message)
        return ADDRESS

    async with mcp_trio.connect(shop.server, versions=[version], on_elicit=confirm) as client:
        imported = await client.call_tool(
            "import_products", {"text": CSV}, progress=lambda *step: steps.append(step)
        )
        assert imported.text == "2"
        assert steps == [(0, 2, "importing products")]
        found = await client.call_tool(
            "search_products", {"max_price": 420}, returns=list[shop.Product]
        )
        assert found.data == [shop.Product("assam", "Assam", 400, 3)]
        await fill_order(client)
        uris = ["shop://orders/1", "shop://products/oolong"]
        async with client.listen(uris=uris) as changes:
            result = await client.call_tool("confirm_order", {"number": 1}, returns=shop.Order)
            seen = set()
            async for change in changes:
                seen.add(change.uri)
                if len(seen) == 2:
                    break
        line = shop.Line("oolong", 2, 450)
        order = shop.Order(1, "Ada", "confirmed", ADDRESS["address"], [line], 900)
        assert result.data == order
        assert seen == set(uris)
        assert asked == ["Order 1 of Ada: 2 x oolong, for 9.00 in all"]
        product = await client.call_tool("show_product", {"sku": "oolong"}, returns=shop.Product)
        assert product.data.stock == 3
        listed = await client.call_tool(
            "list_orders", {"status": "confirmed"}, returns=list[shop.Order]
        )
        assert listed.data == [order]


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_shop_order_changed_while_user_reads_is_not_confirmed(
    shop: Any, version: str
) -> None:
    """The user gets what they have agreed to. In 2026-07-28 they are asked once more."""
    asked: list[str] = []

    async def confirm(params: ElicitParams) -> dict[str, Any]:
        asked.append(params.message.partition("for ")[2])
        if len(asked) == 1:
            line = {"number": 1, "sku": "assam", "quantity": 1}
            await client.call_tool("add_to_order", line)
        return ADDRESS

    async with mcp_trio.connect(shop.server, versions=[version], on_elicit=confirm) as client:
        await fill_order(client)
        result = await client.call_tool("confirm_order", {"number": 1})
    if version == "2025-11-25":
        assert asked == ["9.00 in all"]
        assert result.text == "the order changed before it was confirmed; call again"
    else:
        assert asked == ["9.00 in all", "13.00 in all"]
        assert not result.is_error


async def test_shop_form_declined_or_stock_too_low_leaves_order_open(shop: Any) -> None:
    answers: list[Any] = [None, ADDRESS]
    async with mcp_trio.connect(shop.server, on_elicit=lambda _: answers.pop(0)) as client:
        await fill_order(client, quantity=9)
        declined = await client.call_tool("confirm_order", {"number": 1})
        assert declined.text == "the user did not confirm order 1; it is still open"
        short = await client.call_tool("confirm_order", {"number": 1})
        assert short.text == "only 5 pieces of 'oolong' are in stock"
        assert declined.is_error
        assert short.is_error
        cancelled = await client.call_tool("cancel_order", {"number": 1}, returns=shop.Order)
        assert cancelled.data.status == "cancelled"
        again = await client.call_tool("cancel_order", {"number": 1})
        assert again.text == "order 1 is cancelled; only an open one can change"


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("show_product", {"sku": "tea"}, "no product 'tea'; search_products finds those in the shop"),
    ("show_product", {"sku": "Tea!"}, "Invalid argument `sku`"),
    ("set_price", {"sku": "tea", "price": 1}, "no product 'tea'"),
    ("set_price", {"sku": "oolong", "price": 0}, "Invalid argument `price`: expected `int` >= 1"),
    ("restock", {"sku": "tea", "quantity": 1}, "no product 'tea'"),
    ("add_product", {"sku": "oolong", "name": "Oolong", "price": 1}, "there is a product 'oolong'"),
    ("remove_product", {"sku": "oolong"}, "'oolong' is part of an order and has to stay"),
    (
        "import_products",
        {"text": CSV + "a,A,x,1"},
        "row 3: Expected `int`, got `str`",
    ),
    ("import_products", {"text": CSV + "a,A,1,-1"}, "row 3: Expected `int` >= 0 - at `$.stock`"),
    ("import_products", {"text": CSV + "A!,A,1,1"}, "row 3: Expected `str` matching regex"),
    ("import_products", {"text": "sku,name\na,A"}, "row 1: Object missing required field `price`"),
    ("import_products", {"text": "sku,name,price,stock\na,A,1,1,1"}, "row 1: "),
    ("add_to_order", {"number": 7, "sku": "assam", "quantity": 1}, "no order 7; list_orders"),
    ("add_to_order", {"number": 1, "sku": "tea", "quantity": 1}, "no product 'tea'"),
    ("confirm_order", {"number": 2}, "order 2 is empty; fill it with add_to_order"),
]


async def test_shop_mistakes_are_results_with_cause_and_change_nothing(shop: Any) -> None:
    async with mcp_trio.connect(shop.server) as client:
        await fill_order(client)
        await client.call_tool("create_order", {"customer": "Bob"})
        lists = "search_products", "list_orders"
        before = [(await client.call_tool(name)).text for name in lists]
        for name, arguments, text in MISTAKES:
            result = await client.call_tool(name, arguments)
            assert (result.is_error, result.text.startswith(text)) == (True, True), result.text
        after = [(await client.call_tool(name)).text for name in lists]
        assert before == after


async def test_shop_products_can_be_changed_and_removed(shop: Any) -> None:
    async with mcp_trio.connect(shop.server) as client:
        changes: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
            ("add_product", {"sku": "sencha", "name": "Sencha", "price": 300}, (300, 0)),
            ("set_price", {"sku": "sencha", "price": 350}, (350, 0)),
            ("restock", {"sku": "sencha", "quantity": 4}, (350, 4)),
        ]
        for name, arguments, (price, stock) in changes:
            changed = await client.call_tool(name, arguments, returns=shop.Product)
            assert changed.data == shop.Product("sencha", "Sencha", price, stock)
        assert (await client.read_resource("shop://products")).contents[0].text == '["sencha"]'
        assert (await client.call_tool("remove_product", {"sku": "sencha"})).text
        assert (await client.read_resource("shop://products")).contents[0].text == "[]"


async def test_shop_resources_and_prompt_are_served(shop: Any) -> None:
    async with mcp_trio.connect(shop.server) as client:
        await fill_order(client)
        [contents] = (await client.read_resource("shop://orders/1")).contents
        assert contents.mime_type == "application/json"
        assert contents.text is not None
        assert contents.text.startswith('{"number":1,"customer":"Ada","status":"open"')
        for uri in "shop://orders/7", "shop://products/tea":
            with pytest.raises(mcp_trio.PeerError, match=r"^no (order 7|product 'tea')") as missing:
                await client.read_resource(uri)
            assert missing.value.code == -32602
        [message] = (await client.get_prompt("plan_purchases", {"budget": "2500"})).messages
        assert "for at most 25.00" in message.content.text  # type: ignore[union-attr]


async def test_shop_tools_declare_what_they_change(shop: Any) -> None:
    """Hosts ask their users by these hints: a tool that writes must not claim to read."""
    async with mcp_trio.connect(shop.server) as client:
        tools = {tool.name: tool.annotations for tool in await client.list_tools()}
    assert len(tools) == 12
    hints = {name: hint for name, hint in tools.items() if hint is not None}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == {
        "search_products",
        "show_product",
        "list_orders",
    }
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {
        "set_price",
        "remove_product",
        "import_products",
        "cancel_order",
    }


async def test_shop_import_cancelled_keeps_whole_batches(shop: Any) -> None:
    """The client gives up after 300 of 1,000 rows, and a second import completes them."""
    rows = "\n".join(f"tea-{number},Tea,100,1" for number in range(1_000))
    text = f"sku,name,price,stock\n{rows}\n"

    async def limit_reached(done: float, *_: object) -> None:
        if done >= 300:
            scope.cancel()

    async with mcp_trio.connect(shop.server) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("import_products", {"text": text}, progress=limit_reached)
        assert scope.cancelled_caught
        stored = (await client.read_resource("shop://products")).contents[0].text
        assert stored is not None
        count = stored.count("tea-")
        assert count % shop.BATCH == 0
        assert 300 <= count < 1_000
        assert (await client.call_tool("import_products", {"text": text})).text == "1000"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"SHOP_DATABASE": str(tmp_path / "shop.db"), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def url(environment: dict[str, str]) -> Iterator[str]:
    """The URL of a shop that the command serves over HTTP."""
    words = [sys.executable, "-m", "mcp_trio", "run", "--http", "0", str(EXAMPLES / "shop.py")]
    env = os.environ | environment
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            [url] = re.findall(r"http://\S+", process.stderr.readline())
            yield url
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


async def test_shop_database_file_is_shared_by_stdio_and_http(
    environment: dict[str, str], url: str
) -> None:
    async with mcp_trio.connect_stdio(command("shop.py"), env=environment) as client:
        assert (await client.call_tool("import_products", {"text": CSV})).text == "2"
    async with mcp_trio.connect(url) as client:
        [contents] = (await client.read_resource("shop://products")).contents
        assert contents.text == '["assam","oolong"]'


def test_shop_database_that_cannot_be_opened_ends_with_cure(tmp_path: Path) -> None:
    """A wrong path in the environment costs the user one line, not a traceback."""
    path = tmp_path / "missing" / "shop.db"
    done = subprocess.run(
        command("shop.py"),
        env={**os.environ, "SHOP_DATABASE": str(path), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"{path} cannot be opened (unable to open database file): "
        "set SHOP_DATABASE to a file you may write to\n"
    )
