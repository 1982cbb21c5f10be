"""Names that are too long for the Kubernetes API: cut, and made unique by a hash."""

from __future__ import annotations

import hashlib
import re

from driver.api import LOCAL_POOLS, SHARED_POOLS, ConfigurationName, NodeName

POOL_LIMIT = 253
"""Most characters of a pool's name."""

VALUE_LIMIT = 64
"""Most bytes of a string attribute of a device."""

LABEL_LIMIT = 63
"""Most characters of a label's value."""

_DIGEST_BYTES = 5
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def as_text(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which stands for a byte that was no UTF-8.

    JSON cannot have a lone surrogate, and one such device must not prevent the others from being
    written.
    """
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def short_hash(text: str) -> str:
    """Ten hexadecimal digits that identify the whole text of a name that was cut."""
    encoded = text.encode(errors="surrogatepass")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()


def device_trace(configuration: ConfigurationName, digest: str) -> str:
    """Key of a device of a Configuration, which does not depend on the name of its Instance.

    Two Configurations may offer the same device, each in a pool of its own.
    """
    return f"{configuration}/{digest}"


def attribute_value(text: str, *, limit: int = VALUE_LIMIT) -> str:
    """The text if it fits, else its beginning and a hash of the whole text.

    Publishers of an attribute and its selectors must both use this function.
    """
    if len(text) <= limit and text.isascii():
        return text
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    digest = short_hash(text)
    return f"{encoded[: limit - len(digest) - 1].decode(errors='ignore')}-{digest}"


def shared_pool(configuration: ConfigurationName) -> str:
    """The pool of the devices of a Configuration that several nodes see."""
    return f"{SHARED_POOLS}{configuration}"


def is_shared_pool(name: str) -> bool:
    return name.startswith(SHARED_POOLS)


def configuration_of_pool(name: str) -> ConfigurationName:
    """The Configuration of a shared pool."""
    return ConfigurationName(name.removeprefix(SHARED_POOLS))


def local_pool(node: NodeName, configuration: ConfigurationName) -> str:
    """The pool of the devices of a Configuration that only this node sees.

    If both names do not fit, it is the pool of the whole node.
    """
    pool = f"{_local_pools(node)}{configuration}"
    if len(pool) > POOL_LIMIT:
        pool = f"{_local_pools(node)}{short_hash(configuration)}"
    return pool if len(pool) <= POOL_LIMIT else node


def is_pool_of(node: str, pool: str) -> bool:
    """Whether a pool belongs to a node: the node's own pool, or the pool of one Configuration."""
    return pool == node or pool.startswith(_local_pools(node))


def _local_pools(node: str) -> str:
    return f"{LOCAL_POOLS}{node}/"


def label_value(name: str) -> str:
    """An object's name as the value of a label, cut if it is too long."""
    return attribute_value(name, limit=LABEL_LIMIT)
