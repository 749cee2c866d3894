"""Streamed reduction of samples to an information factor per joint and segment, mergeable and weighable afterwards."""

from dynid.information.chunks import CHUNK
from dynid.information.extension import Extension
from dynid.information.factor import Factor
from dynid.information.information import Information
from dynid.information.methods import METHODS, Method, Preconditioner
from dynid.information.reduction import precondition, reduce_extended, reduce_samples, reduce_stream

__all__ = [
    "CHUNK",
    "METHODS",
    "Extension",
    "Factor",
    "Information",
    "Method",
    "Preconditioner",
    "precondition",
    "reduce_extended",
    "reduce_samples",
    "reduce_stream",
]
