"""The proof of `gaussian`. It is that of Gaussian noise under a hierarchy too, and stands in `methods.base.gaussian_proof`."""

from __future__ import annotations

from attrpriv.methods.base.gaussian_proof import CasesCheck, GaussianCheck, GaussianEvidence

__all__ = ["CasesCheck", "GaussianCheck", "GaussianEvidence"]
