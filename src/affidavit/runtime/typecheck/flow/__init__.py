"""What values reach a place: an analysis of the whole script, for what type annotations do not say."""

from affidavit.runtime.typecheck.flow.analysis import Analysis, follow
from affidavit.runtime.typecheck.flow.growth import growth

__all__ = ["Analysis", "follow", "growth"]
