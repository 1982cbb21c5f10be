"""XML from strangers, read as a tree.

Nothing is declared in it (a document type is refused, and lxml neither loads one nor expands what
it declares), it is not larger than the caller allows, not deeper than lxml allows (256 levels), and
has no more than `MOST_ELEMENTS`. Bytes that are not in the encoding that they claim are read as
Latin-1: one odd letter makes no camera useless.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import XMLParser, XMLSyntaxError, _Element, fromstring

MOST_ELEMENTS = 5_000


class XmlError(Exception):
    """Raised for what is no XML, or none that is read here; the text goes into a sentence."""


def read_xml(document: bytes) -> _Element:
    """The root of a document.

    Raises:
        XmlError: If it cannot be read.
    """
    root = _read(document)
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlError("it declares a document type")
    if sum(1 for _ in root.iter()) > MOST_ELEMENTS:
        raise XmlError("too many elements")
    return root


def named(root: _Element, name: str) -> Iterator[_Element]:
    """All elements of a name, of whatever namespace, in the document's order."""
    return iter(root.iter("{*}" + name))


def text_of(root: _Element, *path: str) -> str:
    """The text of the first element on a path of names, each anywhere below the one before."""
    found = root.findtext(".//" + "//".join(f"{{*}}{name}" for name in path))
    return (found or "").strip()


def _read(document: bytes) -> _Element:
    try:
        return fromstring(document, _parser(None))
    except XMLSyntaxError as error:
        if _is_utf8(document):
            raise XmlError(error.msg) from error
    try:
        return fromstring(document, _parser("iso-8859-1"))
    except XMLSyntaxError as error:
        raise XmlError(error.msg) from error


def _parser(encoding: str | None) -> XMLParser:
    return XMLParser(encoding=encoding, resolve_entities=False, no_network=True)


def _is_utf8(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True
