"""Estimation of the rate that the path carries, from what reports tell of arrivals and losses (specification section 9.3)."""

from __future__ import annotations

from voicestream.core.bwe.estimator import Estimator
from voicestream.core.bwe.loss import LossPattern
from voicestream.core.bwe.quality import Quality, QualityGauge
from voicestream.core.bwe.samples import Sample
from voicestream.core.bwe.state import State

__all__ = ["Estimator", "LossPattern", "Quality", "QualityGauge", "Sample", "State"]
