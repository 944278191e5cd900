"""What will be free a while ahead: trend and daily season of the last day, by statsmodels' autoregression.

Rules:
1. The samples are averaged in steps of `STEP`; where some are missing, they are interpolated.
2. The model is a straight line, the first harmonic of a day where the samples span one, and the rest one step before.
   With less than `LEAST` of samples there is no forecast.
3. What is forecast lies within what the samples saw: what goes on and on is not followed below or above that.

For example free memory of 5,000, 4,900, … that falls by 100 in each step is forecast to stay where it has come to, and
one that falls and rises with the day to be where it was a day ago.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyengine.server.annotator.measurement import Sample, is_amount

STEP = 300.0
"""Seconds."""
DAY = 24 * 3600.0
LEAST = 3600.0
"""Seconds of samples."""


class ForecastUnusable(Exception):
    """The library is not installed; one sentence that says what to do."""


class Forecaster:
    """Forecasts of series, each remembered until `ahead` has half gone by."""

    def __init__(self, ahead: float) -> None:
        """`ahead`: how far, in seconds. Raises `ForecastUnusable`."""
        try:
            from statsmodels.tsa import ar_model, deterministic
        except ImportError:
            raise ForecastUnusable(
                "a forecast needs statsmodels: pip install 'policyengine-scheduler[forecast]'"
            ) from None
        self._models, self._terms = ar_model, deterministic
        self._ahead = ahead
        self._known: dict[str, tuple[float, float | None]] = {}
        """Series -> when it was forecast, and what."""

    def of(self, series: str, samples: Sequence[Sample]) -> float | None:
        """What the series will be; None where its samples do not say. `samples` ascend in time."""
        if not samples:
            self._known.pop(series, None)
            return None
        at = samples[-1][0]
        known = self._known.get(series)
        if known is None or at - known[0] >= self._ahead / 2 or at < known[0]:
            known = self._known[series] = at, self._forecast(samples)
        return known[1]

    def _forecast(self, samples: Sequence[Sample]) -> float | None:
        values = evened(samples)
        if len(values) * STEP < LEAST:
            return None
        if values.min() == values.max():
            return float(values[0])
        seasons = [self._terms.Fourier(int(DAY / STEP), 1)] if len(values) * STEP >= DAY else []
        index = range(len(values))
        terms = self._terms.DeterministicProcess(index, constant=True, order=1, additional_terms=seasons)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one solution of several does where all fit alike
            fitted = self._models.AutoReg(values, lags=1, trend="n", deterministic=terms).fit()
        last = len(values) - 1 + max(1, round(self._ahead / STEP))
        found = float(np.asarray(fitted.predict(last, last))[-1])
        return min(max(found, float(values.min())), float(values.max())) if math.isfinite(found) else None


def evened(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """The means of the last day's samples in steps that end with the last sample."""
    amounts = [(at, value) for at, value in samples if is_amount(value)]
    if not amounts:
        return np.zeros(0)
    end = amounts[-1][0]
    places = np.array([int((end - at) // STEP) for at, _ in amounts])
    values = np.array([value for _, value in amounts])
    recent = places < DAY / STEP
    places, values = places[recent], values[recent]
    sums, counts = np.bincount(places, values), np.bincount(places)
    there = np.flatnonzero(counts)
    return np.interp(np.arange(len(counts)), there, sums[there] / counts[there])[::-1]
