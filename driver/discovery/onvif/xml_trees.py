"""XML from strangers, read as a tree.

Nothing is declared in it (a document type is refused, so there are no entities to multiply), it is
not larger than the caller allows, and it has no more than `MOST_ELEMENTS`. Bytes that are not in
the encoding that they claim are read as Latin-1: one odd letter makes no camera useless.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MOST_ELEMENTS = 5_000
MOST_LEVELS = 64


class XmlError(Exception):
    """Raised for what is no XML, or none that is read here; the text goes into a sentence."""


def read_xml(document: bytes) -> Element:
    """The root of a document; names are without their namespaces, attributes are left out.

    Raises:
        XmlError: If it cannot be read.
    """
    try:
        return _read(document, None)
    except expat.ExpatError as error:
        if not _is_misencoded(document):
            raise XmlError(expat.ErrorString(error.code)) from error
    except (ValueError, LookupError) as error:  # an encoding that there is not
        raise XmlError("unknown encoding") from error
    try:
        return _read(document, "iso-8859-1")
    except expat.ExpatError as error:
        raise XmlError(expat.ErrorString(error.code)) from error


def named(root: Element, name: str) -> Iterator[Element]:
    """All elements of a name, in the document's order."""
    return root.iter(name)


def text_of(root: Element, *path: str) -> str:
    """The text of the first element on a path of names, each anywhere below the one before."""
    here = root
    for name in path:
        below = (one for one in here.iter(name) if one is not here)
        found = next(below, None)
        if found is None:
            return ""
        here = found
    return (here.text or "").strip()


class _Tree:
    """Takes what expat reads."""

    def __init__(self) -> None:
        self._builder = TreeBuilder()
        self._left = MOST_ELEMENTS
        self._level = 0

    def start(self, name: str, _: object) -> None:
        self._left -= 1
        self._level += 1
        if self._left < 0 or self._level > MOST_LEVELS:
            raise XmlError("too many elements")
        self._builder.start(name.rpartition(" ")[2], {})

    def end(self, name: str) -> None:
        self._level -= 1
        self._builder.end(name.rpartition(" ")[2])

    def data(self, text: str) -> None:
        self._builder.data(text)

    def root(self) -> Element:
        return self._builder.close()


def _read(document: bytes, encoding: str | None) -> Element:
    tree = _Tree()
    parser = expat.ParserCreate(encoding, namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.data
    parser.Parse(document, True)
    return tree.root()


def _refuse(*_: object) -> None:
    raise XmlError("it declares a document type")


def _is_misencoded(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return True
    return False
