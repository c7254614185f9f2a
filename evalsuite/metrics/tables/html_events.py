"""HTML as a stream of tags and texts, from the parser under BeautifulSoup's `lxml`, without any tree.

Building BeautifulSoup's tree takes ten times as long as parsing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHITELIST = frozenset({
    "table", "tr", "th", "td", "ul", "ol", "li", "div", "span", "p", "a", "img", "embed", "pre", "h1", "h2", "h3",
    "h4", "h5", "h6", "input", "button",
})  # fmt: skip
BYTE_ORDER_MARK = "\ufeff"


class HtmlListener:
    """What lxml calls while it parses. Every start has its end; one text may come in several pieces."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """A piece of text."""

    def comment(self, text: str) -> None:
        """A comment, which parts the texts around it."""

    def pi(self, target: str, text: str) -> None:
        """A processing instruction, likewise."""

    def doctype(self, name: str, public: str, system: str) -> None:
        """A document type, likewise."""

    def close(self) -> None:
        """The end of the document."""


def listen(markup: str, listener: HtmlListener) -> None:
    """Parses any text as HTML; nothing in it is an error. Lone surrogates are read as question marks.

    Raises:
        ScoringError: the parser gave up, which no known input makes it do.
    """
    from lxml import etree

    text = markup.removeprefix(BYTE_ORDER_MARK).encode("utf-8", "replace").decode("utf-8")
    parser = etree.HTMLParser(target=listener, recover=True)
    try:
        # Fed, not handed over whole: libxml2 reads a little differently then.
        parser.feed(text)
        parser.close()
    except etree.LxmlError as error:
        raise ScoringError(f"lxml could not read HTML of {len(markup)} characters: {error}") from error
