"""The API server's Events about a pod: what is left of one that is gone."""

from __future__ import annotations

from kube.api import EVENTS, ApiClient, ApiError, JsonObject

NEWEST = 5
"""How many are told."""


async def told_of(client: ApiClient, namespace: str, name: str) -> tuple[str, ...]:
    """The newest Events about pods of a name, the oldest first; none where they may not be read."""
    selected = EVENTS.select(namespace, field_selector=f"regarding.kind=Pod,regarding.name={name}")
    try:
        found = await client.list(selected)
    except ApiError:
        return ()
    newest = sorted(found.items, key=_when)[-NEWEST:]
    return tuple(
        f"{_when(event)} {event.get('reason')}: {event.get('note') or ''}" for event in newest
    )


def _when(event: JsonObject) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    old = event.get("deprecatedLastTimestamp")
    created = event["metadata"].get("creationTimestamp")
    return str(series or event.get("eventTime") or old or created or "")
