"""A shop in an SQLite database: twelve tools, resources with subscriptions, a form and a prompt.

Plain functions run in worker threads (`threads=True`), because SQLite blocks. A function that
awaits a form or progress is an `async def`, and starts a thread for each step with the database.
What a model can correct is a `ToolError`. Without `SHOP_DATABASE` the database is in memory. Try::

    mcp-trio inspect -- python shop.py
    export SHOP_DATABASE=shop.db
    mcp-trio run --http 8000 shop.py &
    mcp-trio call add_product sku=oolong name=Oolong price=450 http://127.0.0.1:8000/mcp
    mcp-trio call restock sku=oolong quantity=9 http://127.0.0.1:8000/mcp

Over HTTP there is no login here: `fastapi_guard.py` has one.
"""

import csv
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import astuple, dataclass
from threading import Lock
from typing import Annotated, Literal, TypeAlias

import trio
from msgspec import Meta, convert

import mcp_trio
from mcp_core.types import ToolAnnotations

SCHEMA = """
PRAGMA foreign_keys = ON;
CREATE TABLE IF NOT EXISTS products (
    sku TEXT PRIMARY KEY, name TEXT NOT NULL, price INTEGER NOT NULL, stock INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    number INTEGER PRIMARY KEY, customer TEXT NOT NULL, status TEXT NOT NULL, address TEXT);
CREATE TABLE IF NOT EXISTS lines (
    number INTEGER NOT NULL REFERENCES orders, sku TEXT NOT NULL REFERENCES products,
    quantity INTEGER NOT NULL, price INTEGER NOT NULL, PRIMARY KEY (number, sku));
"""
BATCH = 100  # rows of an import in one transaction, so that other calls run in between


class NotFound(mcp_trio.ToolError, mcp_trio.ResourceNotFound):
    """There is no such product or order: the error of a tool, and of a resource."""


class Database:
    """An SQLite database for any number of threads. One transaction runs at a time."""

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.connection.executescript(SCHEMA)
        self.lock = Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self.lock, self.connection:  # commits, or rolls back after an exception
            self.connection.execute("BEGIN IMMEDIATE")  # other processes may use the file, too
            yield self.connection

    def close(self) -> None:
        with self.lock:  # the thread of a cancelled call may still run
            self.connection.close()


@asynccontextmanager
async def lifespan(_: mcp_trio.Server) -> AsyncIterator[Database]:
    path = os.environ.get("SHOP_DATABASE", ":memory:")
    try:
        database = Database(path)
    except sqlite3.Error as exc:
        sys.exit(f"{path} cannot be opened ({exc}): set SHOP_DATABASE to a file you may write to")
    try:
        yield database
    finally:
        database.close()


server = mcp_trio.Server(
    "shop",
    "1.0",
    instructions="Prices are in cents. An order is created, filled, and confirmed by the user.",
    threads=True,
    lifespan=lifespan,
)
Context: TypeAlias = mcp_trio.Context[Database]

# What a client may tell its user before it calls a tool. All tools stay inside of the shop.
READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADD = ToolAnnotations(destructive_hint=False, open_world_hint=False)
SET = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Sku: TypeAlias = Annotated[str, Meta(pattern="^[a-z0-9-]+$", description="The key of a product.")]
Cents: TypeAlias = Annotated[int, Meta(ge=1, le=10_000_000, description="A price in cents.")]
Pieces: TypeAlias = Annotated[int, Meta(ge=1, le=10_000, description="A number of pieces.")]
Stock: TypeAlias = Annotated[int, Meta(ge=0, description="The pieces that can be sold.")]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=100, description="The longest list to return.")]
Status: TypeAlias = Literal["open", "confirmed", "cancelled"]


@dataclass
class Product:
    sku: Sku
    name: str
    price: Cents
    stock: Stock


@dataclass
class Line:
    """A part of an order: pieces of one product, at its price when they were added."""

    sku: str
    quantity: int
    price: int


@dataclass
class Order:
    """An order. It has an address once it is confirmed."""

    number: int
    customer: str
    status: Status
    address: str | None
    lines: list[Line]
    total: int


@dataclass
class Delivery:
    """The form with which the user confirms an order."""

    address: Annotated[str, Meta(min_length=5, max_length=200, description="Where to send it?")]


def get_product(db: sqlite3.Connection, sku: str) -> Product:
    row = db.execute("SELECT * FROM products WHERE sku = ?", (sku,)).fetchone()
    if row is None:
        raise NotFound(f"no product {sku!r}; search_products finds those in the shop")
    return Product(*row)


def get_order(db: sqlite3.Connection, number: int) -> Order:
    row = db.execute("SELECT * FROM orders WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise NotFound(f"no order {number}; list_orders returns the numbers")
    select = "SELECT sku, quantity, price FROM lines WHERE number = ? ORDER BY sku"
    lines = [Line(*line) for line in db.execute(select, (number,))]
    total = sum(line.quantity * line.price for line in lines)
    number, customer, status, address = row
    return Order(number, customer, status, address, lines, total)


def get_open_order(db: sqlite3.Connection, number: int) -> Order:
    order = get_order(db, number)
    if order.status != "open":
        raise mcp_trio.ToolError(f"order {number} is {order.status}; only an open one can change")
    return order


def product_changed(sku: str) -> None:
    """Notify the clients that have subscribed to a product. Any thread may call this."""
    server.changed(resource=f"shop://products/{sku}")


def order_changed(number: int) -> None:
    server.changed(resource=f"shop://orders/{number}")


# -- Products --------------------------------------------------------------------------------------


@server.tool(annotations=READ)
def search_products(
    context: Context, text: str = "", max_price: Cents | None = None, limit: Limit = 20
) -> list[Product]:
    """Return the products whose names contain a text, the cheapest first."""
    select = (
        "SELECT * FROM products WHERE instr(lower(name), lower(?)) AND price <= ifnull(?, price)"
        " ORDER BY price, sku LIMIT ?"
    )
    with context.lifespan.transaction() as db:
        return [Product(*row) for row in db.execute(select, (text, max_price, limit))]


@server.tool(annotations=READ)
def show_product(context: Context, sku: Sku) -> Product:
    """Return the name, the price and the stock of a product."""
    with context.lifespan.transaction() as db:
        return get_product(db, sku)


@server.tool(annotations=ADD)
def add_product(context: Context, sku: Sku, name: str, price: Cents) -> Product:
    """Add a product, of which nothing is in stock yet."""
    with context.lifespan.transaction() as db:
        if db.execute("SELECT 1 FROM products WHERE sku = ?", (sku,)).fetchone():
            raise mcp_trio.ToolError(f"there is a product {sku!r} already; set_price changes it")
        db.execute("INSERT INTO products VALUES (?, ?, ?, 0)", (sku, name, price))
    server.changed(resource="shop://products")
    return Product(sku, name, price, 0)


@server.tool(annotations=SET)
def set_price(context: Context, sku: Sku, price: Cents) -> Product:
    """Change the price of a product. Pieces that are part of an order keep theirs."""
    with context.lifespan.transaction() as db:
        db.execute("UPDATE products SET price = ? WHERE sku = ?", (price, sku))
        product = get_product(db, sku)
    product_changed(sku)
    return product


@server.tool(annotations=ADD)
def restock(context: Context, sku: Sku, quantity: Pieces) -> Product:
    """Add pieces of a product to the stock."""
    with context.lifespan.transaction() as db:
        db.execute("UPDATE products SET stock = stock + ? WHERE sku = ?", (quantity, sku))
        product = get_product(db, sku)
    product_changed(sku)
    return product


@server.tool(annotations=SET)
def remove_product(context: Context, sku: Sku) -> str:
    """Remove a product that is not part of any order."""
    with context.lifespan.transaction() as db:
        get_product(db, sku)
        if db.execute("SELECT 1 FROM lines WHERE sku = ?", (sku,)).fetchone():
            raise mcp_trio.ToolError(f"{sku!r} is part of an order and has to stay")
        db.execute("DELETE FROM products WHERE sku = ?", (sku,))
    server.changed(resource="shop://products")
    return f"{sku} was removed"


@server.tool(annotations=SET)
async def import_products(context: Context, text: str) -> int:
    """Add products, or replace those with the same key. Return how many.

    A cancelled import has stored the rows until then, and may be repeated.

    Args:
        text: CSV with the columns sku, name, price and stock, and these names in the first line.
    """
    rows: list[Product] = []
    for row in csv.DictReader(text.splitlines()):
        try:
            rows.append(convert(row, Product, strict=False))  # checks the bounds, too
        except ValueError as exc:
            raise mcp_trio.ToolError(f"row {len(rows) + 1}: {exc}; nothing was stored") from exc

    def store(batch: list[Product]) -> None:
        with context.lifespan.transaction() as db:
            db.executemany(
                "INSERT INTO products VALUES (?, ?, ?, ?) ON CONFLICT (sku) DO UPDATE SET"
                " name = excluded.name, price = excluded.price, stock = excluded.stock",
                [astuple(product) for product in batch],
            )

    for start in range(0, len(rows), BATCH):
        await context.progress(start, len(rows), "importing products")
        await trio.to_thread.run_sync(store, rows[start : start + BATCH])
    server.changed(resource="shop://products")
    return len(rows)


# -- Orders ----------------------------------------------------------------------------------------


@server.tool(annotations=READ)
def list_orders(context: Context, status: Status | None = None, limit: Limit = 20) -> list[Order]:
    """Return the latest orders."""
    select = "SELECT number FROM orders WHERE status = ifnull(?, status) ORDER BY 1 DESC LIMIT ?"
    with context.lifespan.transaction() as db:
        return [get_order(db, number) for (number,) in db.execute(select, (status, limit))]


@server.tool(annotations=ADD)
def create_order(context: Context, customer: str) -> Order:
    """Create an order. It is empty."""
    with context.lifespan.transaction() as db:
        added = db.execute("INSERT INTO orders VALUES (NULL, ?, 'open', NULL)", (customer,))
        assert added.lastrowid is not None
        return get_order(db, added.lastrowid)


@server.tool(annotations=ADD)
def add_to_order(context: Context, number: int, sku: Sku, quantity: Pieces) -> Order:
    """Add pieces of a product to an open order, at its price of now."""
    with context.lifespan.transaction() as db:
        get_open_order(db, number)
        db.execute(
            "INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT (number, sku) DO UPDATE SET"
            " quantity = quantity + excluded.quantity, price = excluded.price",
            (number, sku, quantity, get_product(db, sku).price),
        )
        order = get_order(db, number)
    order_changed(number)
    return order


@server.tool(annotations=ADD)
async def confirm_order(context: Context, number: int) -> Order:
    """Ask the user to confirm an open order, and take its products from the stock."""

    def read() -> Order:
        with context.lifespan.transaction() as db:
            return get_open_order(db, number)

    def confirm(address: str) -> Order:
        with context.lifespan.transaction() as db:
            if get_open_order(db, number) != order:
                raise mcp_trio.ToolError("the order changed before it was confirmed; call again")
            for line in order.lines:
                if (stock := get_product(db, line.sku).stock) < line.quantity:
                    raise mcp_trio.ToolError(f"only {stock} pieces of {line.sku!r} are in stock")
                update = "UPDATE products SET stock = stock - ? WHERE sku = ?"
                db.execute(update, (line.quantity, line.sku))
            update = "UPDATE orders SET status = 'confirmed', address = ? WHERE number = ?"
            db.execute(update, (address, number))
            return get_order(db, number)

    order = await trio.to_thread.run_sync(read)
    if not order.lines:
        raise mcp_trio.ToolError(f"order {number} is empty; fill it with add_to_order")
    pieces = ", ".join(f"{line.quantity} x {line.sku}" for line in order.lines)
    # In 2026-07-28 the tool ends here, and runs again from its beginning with the answer. All that
    # the user agrees to is in the question: a changed order is another question.
    question = f"Order {number} of {order.customer}: {pieces}, for {order.total / 100:.2f} in all"
    answer = await context.elicit(question, Delivery)
    if answer.action != "accept":
        raise mcp_trio.ToolError(f"the user did not confirm order {number}; it is still open")
    confirmed = await trio.to_thread.run_sync(confirm, answer.data.address)
    order_changed(number)
    for line in order.lines:
        product_changed(line.sku)
    return confirmed


@server.tool(annotations=SET)
def cancel_order(context: Context, number: int) -> Order:
    """Cancel an open order."""
    with context.lifespan.transaction() as db:
        get_open_order(db, number)
        db.execute("UPDATE orders SET status = 'cancelled' WHERE number = ?", (number,))
        order = get_order(db, number)
    order_changed(number)
    return order


# -- Resources and prompts -------------------------------------------------------------------------


@server.resource("shop://products", mime_type="application/json")
def products(context: Context) -> list[str]:
    """Return the keys of all products."""
    with context.lifespan.transaction() as db:
        return [sku for (sku,) in db.execute("SELECT sku FROM products ORDER BY sku")]


@server.resource("shop://products/{sku}", mime_type="application/json")
def product_resource(context: Context, sku: str) -> Product:
    """Return a product. Subscribe to follow its price and its stock."""
    with context.lifespan.transaction() as db:
        return get_product(db, sku)


@server.resource("shop://orders/{number}", mime_type="application/json")
def order_resource(context: Context, number: int) -> Order:
    """Return an order. Subscribe to follow its status."""
    with context.lifespan.transaction() as db:
        return get_order(db, number)


@server.prompt
def plan_purchases(budget: int = 10_000) -> str:
    """Ask what to buy for the stock.

    Args:
        budget: the cents that may be spent.
    """
    return (
        "Look at the products, their stock and the open orders. Which products are about to run"
        f" out? Make a list of what to buy for at most {budget / 100:.2f}, and restock nothing yet."
    )


if __name__ == "__main__":
    mcp_trio.run(server)
