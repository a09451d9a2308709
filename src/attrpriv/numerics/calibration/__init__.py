"""Calibration: the least noise that keeps a promise, always returned on the private side.

Each name loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.lazy import attribute

if TYPE_CHECKING:
    from attrpriv.numerics.calibration.chain_curve import chain_budget, chain_epsilon
    from attrpriv.numerics.calibration.chain_quilt import (
        ChainScore,
        approximate_chain_score,
        chain_loss,
        chain_score,
        closed_influence,
        node_score,
    )
    from attrpriv.numerics.calibration.count_cases import case_delta, case_loss, least_case_scale
    from attrpriv.numerics.calibration.coupling import CertifiedCoupling, certified_coupling, coupling_loss_upper
    from attrpriv.numerics.calibration.direct import DirectDelta, continuous_gaussian_sigma, direct_delta, least_direct_scale
    from attrpriv.numerics.calibration.gaussian import (
        DirectNoise,
        EqualisedNoise,
        UnequalNoise,
        classical_mu,
        direct_noise,
        equalised_noise,
        gaussian_mu,
        noise_variance,
        unequal_noise,
    )
    from attrpriv.numerics.calibration.kernel import CertifiedKernel, certified_kernel, kernel_loss_upper
    from attrpriv.numerics.calibration.kernel_accuracy import KernelError, coupling_error, kernel_error
    from attrpriv.numerics.calibration.laplace import (
        LaplaceLoss,
        histogram_loss,
        laplace_loss,
        least_histogram_scale,
        least_laplace_scale,
    )
    from attrpriv.numerics.calibration.linear_program import EnvelopeProgram, KernelProgram, optimal_envelope, optimal_kernel
    from attrpriv.numerics.calibration.network_quilt import NetworkQuilt, network_score
    from attrpriv.numerics.calibration.quantile_clip import QuantileClip, clip_rmse, least_error_split
    from attrpriv.numerics.calibration.row_bridge import RowCase, row_budget, row_epsilon
    from attrpriv.numerics.calibration.set_valued import (
        CheckedCell,
        MovingNoise,
        SetValuedNoise,
        moving_variance,
        set_valued_lam,
        set_valued_variance,
    )
    from attrpriv.numerics.search import largest_private

_HOME = {
    "CertifiedCoupling": "attrpriv.numerics.calibration.coupling",
    "CertifiedKernel": "attrpriv.numerics.calibration.kernel",
    "ChainScore": "attrpriv.numerics.calibration.chain_quilt",
    "CheckedCell": "attrpriv.numerics.calibration.set_valued",
    "DirectDelta": "attrpriv.numerics.calibration.direct",
    "DirectNoise": "attrpriv.numerics.calibration.gaussian",
    "EnvelopeProgram": "attrpriv.numerics.calibration.linear_program",
    "EqualisedNoise": "attrpriv.numerics.calibration.gaussian",
    "KernelError": "attrpriv.numerics.calibration.kernel_accuracy",
    "KernelProgram": "attrpriv.numerics.calibration.linear_program",
    "LaplaceLoss": "attrpriv.numerics.calibration.laplace",
    "MovingNoise": "attrpriv.numerics.calibration.set_valued",
    "NetworkQuilt": "attrpriv.numerics.calibration.network_quilt",
    "QuantileClip": "attrpriv.numerics.calibration.quantile_clip",
    "RowCase": "attrpriv.numerics.calibration.row_bridge",
    "SetValuedNoise": "attrpriv.numerics.calibration.set_valued",
    "UnequalNoise": "attrpriv.numerics.calibration.gaussian",
    "approximate_chain_score": "attrpriv.numerics.calibration.chain_quilt",
    "case_delta": "attrpriv.numerics.calibration.count_cases",
    "case_loss": "attrpriv.numerics.calibration.count_cases",
    "certified_coupling": "attrpriv.numerics.calibration.coupling",
    "certified_kernel": "attrpriv.numerics.calibration.kernel",
    "chain_budget": "attrpriv.numerics.calibration.chain_curve",
    "chain_epsilon": "attrpriv.numerics.calibration.chain_curve",
    "chain_loss": "attrpriv.numerics.calibration.chain_quilt",
    "chain_score": "attrpriv.numerics.calibration.chain_quilt",
    "classical_mu": "attrpriv.numerics.calibration.gaussian",
    "clip_rmse": "attrpriv.numerics.calibration.quantile_clip",
    "closed_influence": "attrpriv.numerics.calibration.chain_quilt",
    "continuous_gaussian_sigma": "attrpriv.numerics.calibration.direct",
    "coupling_error": "attrpriv.numerics.calibration.kernel_accuracy",
    "coupling_loss_upper": "attrpriv.numerics.calibration.coupling",
    "direct_delta": "attrpriv.numerics.calibration.direct",
    "direct_noise": "attrpriv.numerics.calibration.gaussian",
    "equalised_noise": "attrpriv.numerics.calibration.gaussian",
    "gaussian_mu": "attrpriv.numerics.calibration.gaussian",
    "histogram_loss": "attrpriv.numerics.calibration.laplace",
    "kernel_error": "attrpriv.numerics.calibration.kernel_accuracy",
    "kernel_loss_upper": "attrpriv.numerics.calibration.kernel",
    "laplace_loss": "attrpriv.numerics.calibration.laplace",
    "largest_private": "attrpriv.numerics.search",
    "least_case_scale": "attrpriv.numerics.calibration.count_cases",
    "least_direct_scale": "attrpriv.numerics.calibration.direct",
    "least_error_split": "attrpriv.numerics.calibration.quantile_clip",
    "least_histogram_scale": "attrpriv.numerics.calibration.laplace",
    "least_laplace_scale": "attrpriv.numerics.calibration.laplace",
    "moving_variance": "attrpriv.numerics.calibration.set_valued",
    "network_score": "attrpriv.numerics.calibration.network_quilt",
    "node_score": "attrpriv.numerics.calibration.chain_quilt",
    "noise_variance": "attrpriv.numerics.calibration.gaussian",
    "optimal_envelope": "attrpriv.numerics.calibration.linear_program",
    "optimal_kernel": "attrpriv.numerics.calibration.linear_program",
    "row_budget": "attrpriv.numerics.calibration.row_bridge",
    "row_epsilon": "attrpriv.numerics.calibration.row_bridge",
    "set_valued_lam": "attrpriv.numerics.calibration.set_valued",
    "set_valued_variance": "attrpriv.numerics.calibration.set_valued",
    "unequal_noise": "attrpriv.numerics.calibration.gaussian",
}

__all__ = [
    "CertifiedCoupling",
    "CertifiedKernel",
    "ChainScore",
    "CheckedCell",
    "DirectDelta",
    "DirectNoise",
    "EnvelopeProgram",
    "EqualisedNoise",
    "KernelError",
    "KernelProgram",
    "LaplaceLoss",
    "MovingNoise",
    "NetworkQuilt",
    "QuantileClip",
    "RowCase",
    "SetValuedNoise",
    "UnequalNoise",
    "approximate_chain_score",
    "case_delta",
    "case_loss",
    "certified_coupling",
    "certified_kernel",
    "chain_budget",
    "chain_epsilon",
    "chain_loss",
    "chain_score",
    "classical_mu",
    "clip_rmse",
    "closed_influence",
    "continuous_gaussian_sigma",
    "coupling_error",
    "coupling_loss_upper",
    "direct_delta",
    "direct_noise",
    "equalised_noise",
    "gaussian_mu",
    "histogram_loss",
    "kernel_error",
    "kernel_loss_upper",
    "laplace_loss",
    "largest_private",
    "least_case_scale",
    "least_direct_scale",
    "least_error_split",
    "least_histogram_scale",
    "least_laplace_scale",
    "moving_variance",
    "network_score",
    "node_score",
    "noise_variance",
    "optimal_envelope",
    "optimal_kernel",
    "row_budget",
    "row_epsilon",
    "set_valued_lam",
    "set_valued_variance",
    "unequal_noise",
]


def __getattr__(name: str) -> Any:
    return attribute(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
