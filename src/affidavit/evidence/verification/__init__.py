"""Checking what others hand over, with nothing but the file: bundles, and the answers in them."""

from affidavit.evidence.verification.answer import check_answer, check_envelope
from affidavit.evidence.verification.bundle import BundleCheck, check_bundle, damaged
from affidavit.evidence.verification.report import Problem, Report

__all__ = ["BundleCheck", "Problem", "Report", "check_answer", "check_bundle", "check_envelope", "damaged"]
