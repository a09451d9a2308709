"""Guarantee and Certificate: what a plan promises, and the numbers that prove it.

A certificate is self-contained: `verify` recomputes the promise from the numbers stored in it, rounding up, and raises
`CertificateError` if it does not hold. One module for each kind of evidence. What must never change: a NaN or an infinity
anywhere fails the check, and nothing in a certificate depends on the table's values.
"""

from attrpriv.guarantee.calibrated_weights import WeightedColumn, WeightsCheck, WeightsEvidence
from attrpriv.guarantee.certificate import LEAST_LEFT, Certificate, Guarantee
from attrpriv.guarantee.chain import ChainCheck, ChainEvidence
from attrpriv.guarantee.clamp import Clamp, Read
from attrpriv.guarantee.count_cases import CountCasesCheck, CountCasesEvidence
from attrpriv.guarantee.count_sequence import CountDraw, CountHistory, CountSequenceEvidence, JointLaw, SequenceCheck
from attrpriv.guarantee.count_transport import CountHybridEvidence, CountTransportEvidence
from attrpriv.guarantee.counts import CountCheck, CountDirectEvidence, CountLaplaceEvidence, WassersteinEvidence
from attrpriv.guarantee.evidence import Counted, Evidence, words_of
from attrpriv.guarantee.gaussian import CasesCheck, GaussianCheck, GaussianEvidence, matrix_distance
from attrpriv.guarantee.group_transport import GroupTransportEvidence, GroupVectorTransportEvidence
from attrpriv.guarantee.groups import GroupCheck, GroupEvidence, GroupVectorEvidence
from attrpriv.guarantee.hierarchy import HierarchyCheck, HierarchyEvidence
from attrpriv.guarantee.kernels import CouplingEvidence, KernelEvidence
from attrpriv.guarantee.parameter_counts import (
    ParameterCheck,
    ParameterKernelEvidence,
    ParameterNoiseEvidence,
    ParameterWassersteinEvidence,
)
from attrpriv.guarantee.quantile_clip import Moments, QuantileClipEvidence
from attrpriv.guarantee.quilts import EarlierTerms, QuiltCheck, QuiltEvidence, QuiltTerm
from attrpriv.guarantee.sensitivity import ConstantEvidence, LaplaceEvidence, LaplaceTerm
from attrpriv.guarantee.sequence import SequenceEvidence, SequenceStep
from attrpriv.guarantee.transport import TransportCheck, TransportEvidence
from attrpriv.guarantee.view import ViewCell, ViewEvidence

__all__ = [
    "LEAST_LEFT",
    "CasesCheck",
    "Certificate",
    "ChainCheck",
    "ChainEvidence",
    "Clamp",
    "ConstantEvidence",
    "CountCasesCheck",
    "CountCasesEvidence",
    "CountCheck",
    "CountDirectEvidence",
    "CountDraw",
    "CountHistory",
    "CountHybridEvidence",
    "CountLaplaceEvidence",
    "CountSequenceEvidence",
    "CountTransportEvidence",
    "Counted",
    "CouplingEvidence",
    "EarlierTerms",
    "Evidence",
    "GaussianCheck",
    "GaussianEvidence",
    "GroupCheck",
    "GroupEvidence",
    "GroupTransportEvidence",
    "GroupVectorEvidence",
    "GroupVectorTransportEvidence",
    "Guarantee",
    "HierarchyCheck",
    "HierarchyEvidence",
    "JointLaw",
    "KernelEvidence",
    "LaplaceEvidence",
    "LaplaceTerm",
    "Moments",
    "ParameterCheck",
    "ParameterKernelEvidence",
    "ParameterNoiseEvidence",
    "ParameterWassersteinEvidence",
    "QuantileClipEvidence",
    "QuiltCheck",
    "QuiltEvidence",
    "QuiltTerm",
    "Read",
    "SequenceCheck",
    "SequenceEvidence",
    "SequenceStep",
    "TransportCheck",
    "TransportEvidence",
    "ViewCell",
    "ViewEvidence",
    "WassersteinEvidence",
    "WeightedColumn",
    "WeightsCheck",
    "WeightsEvidence",
    "matrix_distance",
    "words_of",
]
