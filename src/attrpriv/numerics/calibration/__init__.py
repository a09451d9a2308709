"""Calibration: the least noise that keeps a promise, always returned on the private side."""

from attrpriv.numerics.calibration.chain_approximation import approximate_chain_score, closed_influence
from attrpriv.numerics.calibration.chain_quilt import ChainScore, chain_loss, chain_score, node_score
from attrpriv.numerics.calibration.count_cases import case_delta, case_loss, least_case_scale
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, certified_coupling, coupling_loss_upper
from attrpriv.numerics.calibration.direct import DirectDelta, continuous_gaussian_sigma, direct_delta, least_direct_scale
from attrpriv.numerics.calibration.gaussian import classical_mu, gaussian_mu, noise_variance
from attrpriv.numerics.calibration.kernel import CertifiedKernel, certified_kernel, kernel_loss_upper
from attrpriv.numerics.calibration.kernel_accuracy import KernelError, coupling_error, kernel_error
from attrpriv.numerics.calibration.laplace import (
    LaplaceLoss,
    histogram_loss,
    laplace_loss,
    least_histogram_scale,
    least_laplace_scale,
)
from attrpriv.numerics.calibration.law_box import CheckedCell, MovingNoise, moving_variance
from attrpriv.numerics.calibration.linear_program import EnvelopeProgram, KernelProgram, optimal_envelope, optimal_kernel
from attrpriv.numerics.calibration.network_quilt import NetworkQuilt, network_score
from attrpriv.numerics.calibration.quantile_clip import QuantileClip, clip_rmse, least_error_split
from attrpriv.numerics.calibration.set_valued import SetValuedNoise, set_valued_lam, set_valued_variance
from attrpriv.numerics.calibration.unequal import (
    DirectNoise,
    EqualisedNoise,
    UnequalNoise,
    direct_noise,
    equalised_noise,
    unequal_noise,
)
from attrpriv.numerics.search import largest_private

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
    "SetValuedNoise",
    "UnequalNoise",
    "approximate_chain_score",
    "case_delta",
    "case_loss",
    "certified_coupling",
    "certified_kernel",
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
    "set_valued_lam",
    "set_valued_variance",
    "unequal_noise",
]
