"""Queues of KAI and Kueue as Moorage's Queues, and what of them cannot be said.

    documents ──► objects ──► kai, kueue ──► drafts ──► Queues
                                    └──────────────────► findings

Input: parsed YAML or JSON documents. Output: the bodies of Queues, parents first, and a finding for
each field that has a meaning and no counterpart. A field that no model names is a finding by
itself, so that nothing is silently dropped. Start reading at `translation`.
"""
