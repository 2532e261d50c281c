"""Certificates: proofs in a file, and a checker that shares no code with the solver."""

from certikmeans.certificate.check import Verdict, check_certificate
from certikmeans.certificate.check_pricing import Limits
from certikmeans.certificate.format import Reason

__all__ = ["Limits", "Reason", "Verdict", "check_certificate"]
