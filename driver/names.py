"""Names where the Kubernetes API has too little room for them: cut, and told apart by a hash."""

from __future__ import annotations

import hashlib
import re

from driver.api import LOCAL_POOLS, SHARED_POOLS, ConfigurationName, NodeName

POOL_LIMIT = 253
"""Characters of a pool's name."""

VALUE_LIMIT = 64
"""Bytes of a string attribute of a device."""

LABEL_LIMIT = 63
"""Characters of a label's value."""

_DIGEST_BYTES = 5
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def as_text(text: str) -> str:
    """The text with U+FFFD for each byte that was no UTF-8, which stands in it as a surrogate.

    No JSON can carry a lone surrogate, and one such device must not keep a list from being sent.
    """
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def short_hash(text: str) -> str:
    """Ten hexadecimal digits that stand for the whole text where its name had to be cut."""
    encoded = text.encode(errors="surrogatepass")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()


def device_trace(configuration: ConfigurationName, digest: str) -> str:
    """What tells a device of a Configuration, whatever its Instance's name is by now.

    Two Configurations may offer one device, each in a pool of its own.
    """
    return f"{configuration}/{digest}"


def attribute_value(text: str, *, limit: int = VALUE_LIMIT) -> str:
    """The text if it fits, else its beginning and a hash of all of it.

    Whoever publishes an attribute and whoever selects by it must both come here.
    """
    if len(text) <= limit and text.isascii():
        return text
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    digest = short_hash(text)
    return f"{encoded[: limit - len(digest) - 1].decode(errors='ignore')}-{digest}"


def shared_pool(configuration: ConfigurationName) -> str:
    """The pool of those devices of a Configuration that several nodes see."""
    return f"{SHARED_POOLS}{configuration}"


def is_shared_pool(name: str) -> bool:
    return name.startswith(SHARED_POOLS)


def configuration_of_pool(name: str) -> ConfigurationName:
    """Whose devices are in a shared pool."""
    return ConfigurationName(name.removeprefix(SHARED_POOLS))


def local_pool(node: NodeName, configuration: ConfigurationName) -> str:
    """The pool of those devices of a Configuration that only this node sees.

    Where there is no room for both names it is the pool of the whole node.
    """
    pool = f"{_local_pools(node)}{configuration}"
    if len(pool) > POOL_LIMIT:
        pool = f"{_local_pools(node)}{short_hash(configuration)}"
    return pool if len(pool) <= POOL_LIMIT else node


def is_pool_of(node: str, pool: str) -> bool:
    """Whether a pool is of one node's devices: of one Configuration, or of whichever."""
    return pool == node or pool.startswith(_local_pools(node))


def _local_pools(node: str) -> str:
    return f"{LOCAL_POOLS}{node}/"


def label_value(name: str) -> str:
    """An object's name as the value of a label, where names are shorter."""
    return attribute_value(name, limit=LABEL_LIMIT)
