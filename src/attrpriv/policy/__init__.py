"""The policy: what an owner writes once. The strict YAML loader, the models and their JSON Schema."""

from attrpriv.policy.models import Policy

__all__ = ["Policy"]
