"""A knowledge base: articles as resources, a tool that searches them, and a prompt.

A user picks an article or a prompt, and the program attaches it. The model searches by itself, and
gets links: it reads what it needs. `python knowledge.py 2025-11-25` does the same in that revision.
"""

import sys
from dataclasses import dataclass
from typing import Annotated

import trio
from msgspec import Meta

import mcp_trio
from mcp_core import ALL, ToolError
from mcp_core.registry import File, ResourceNotFound, Server
from mcp_core.types import ResourceLink, TextContent, ToolAnnotations

server = Server("knowledge", instructions="Search before you answer, and name the articles.")


@dataclass
class Article:
    title: str
    text: str


ARTICLES = {
    "refunds": Article("Refunds", "A refund takes five days. Ask for the number of the order."),
    "orders": Article("Orders", "An order can be changed until it is packed."),
    "parcels": Article("Parcels", "A parcel has a number. It arrives within five days."),
}


def find(id: str) -> Article:
    if id not in ARTICLES:
        raise ResourceNotFound(f"There is no article {id!r}.")
    return ARTICLES[id]


@server.resource("kb://articles", mime_type="application/json")
def index() -> dict[str, str]:
    """The titles of all articles, by id."""
    return {id: article.title for id, article in ARTICLES.items()}


@server.resource("kb://articles/{id}", mime_type="text/markdown")
def article(id: str) -> str:
    """One article."""
    found = find(id)
    return f"# {found.title}\n\n{found.text}\n"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(
    words: str, limit: Annotated[int, Meta(ge=1, le=20)] = 5
) -> list[TextContent | ResourceLink]:
    """Find articles. Those with most of the words come first.

    Args:
        words: what to look for
        limit: how many articles to return
    """
    wanted = set(words.lower().split())
    if not wanted:
        raise ToolError("Name at least one word.")
    texts = {id: f"{each.title} {each.text}".lower() for id, each in ARTICLES.items()}
    hits = {id: sum(word in text for word in wanted) for id, text in texts.items()}
    best = sorted((id for id in hits if hits[id]), key=lambda id: -hits[id])[:limit]
    if not best:
        return [TextContent("No article has any of these words.")]
    return [ResourceLink(uri=f"kb://articles/{id}", name=ARTICLES[id].title) for id in best]


@server.tool
def revise(id: str, text: str) -> str:
    """Replace the text of an article.

    Args:
        id: of the article
        text: all of its new text
    """
    try:
        find(id).text = text
    except ResourceNotFound as exc:
        raise ToolError(f"{exc} There are: {', '.join(ARTICLES)}.") from None
    server.changed(resource=f"kb://articles/{id}")
    return "Revised."


@server.prompt
def reply(id: str, question: str) -> list[str | File]:
    """Answer a customer from one article.

    Args:
        id: of the article
        question: what the customer wants to know
    """
    source = File(article(id), f"kb://articles/{id}", "text/markdown")
    return [source, f"Answer from this article only, in two sentences: {question}"]


@server.completion("reply", "id")
@server.completion("kb://articles/{id}", "id")
def ids_like(typed: str) -> list[str]:
    """Return the ids that begin with the typed text."""
    return [id for id in ARTICLES if id.startswith(typed)]


async def main() -> None:
    async with mcp_trio.connect(server, versions=sys.argv[1:] or ALL) as client:
        found = await client.call_tool("search", {"words": "refund order"})
        for link in found.content:
            assert isinstance(link, ResourceLink)
            print(link.name, link.uri)
        print((await client.read_resource("kb://articles/refunds")).contents[0].text)
        print(*(await client.complete("reply", "id", "o")).values)
        print((await client.call_tool("revise", {"id": "orders", "text": "None today."})).text)
        prompt = await client.get_prompt("reply", {"id": "orders", "question": "When?"})
        print(len(prompt.messages), "messages")


if __name__ == "__main__":
    trio.run(main)
