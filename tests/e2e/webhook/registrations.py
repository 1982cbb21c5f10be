"""Registrations of the webhook, filled in as somebody does who brings its certificate."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any


def registration(
    template: Mapping[str, Any], ca_certificate: bytes, *, base_url: str = ""
) -> dict[str, Any]:
    """Fill a webhook configuration in, so that the API server trusts the webhook.

    Args:
        template: A ValidatingWebhookConfiguration or MutatingWebhookConfiguration, as
            `deploy/webhook/` has it, without a caBundle.
        ca_certificate: PEM of whoever signed the webhook's certificate, or that one itself.
        base_url: Where the webhook runs outside the cluster, such as `https://10.0.0.1:9443`;
            "" for the Service that the template names.
    """
    filled = [
        {**entry, "clientConfig": _client_config(entry["clientConfig"], ca_certificate, base_url)}
        for entry in template["webhooks"]
    ]
    return {**template, "webhooks": filled}


def _client_config(
    config: Mapping[str, Any], ca_certificate: bytes, base_url: str
) -> dict[str, Any]:
    target = {"service": config["service"]}
    if base_url:
        target = {"url": f"{base_url}{config['service']['path']}"}
    return {**target, "caBundle": b64encode(ca_certificate).decode()}
