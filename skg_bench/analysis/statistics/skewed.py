"""The score interval of a skewed mean: its ends, p-values and detectable sizes.

The spread of a sample grows with the distance of its mean into a tail: of 100 users, 2 harmed ones show a smaller one
than 8 do. Wilson (1927) therefore takes, for a share, the variance that would hold if the candidate were the truth.
With skewness G of the mean, the variance at x standard errors below the mean is 1 - G x times the one found (that is
the regression of a sample variance on its mean), so that for any mean
    x^2 = q^2 (1 - a G x),   q Student's quantile,
    a = 1 + min(1/M, 1/2) on the side of the tail,   M / (M + 30) on the other side.
M is the number of equal effects that would spread as unevenly as those found. Few effects show too little of a tail, so
that the end on its side lies further out; and few effects do not prove that there is no other tail, so that the other
end stays near Student's. This rule does not look at the sign of the mean.
"""

from math import isinf, sqrt

SMALLEST = 1e-12  # of a variance, in proportion
LONG, SHORT = 0.5, 30.0  # chosen by measurement: `experiments/known_truth`
SURPLUS, UNEVEN, FEW = 0.1, 2.5, 3.0  # of what is detectable, as well
UNLUCKY = 0.1  # least variance of an unlucky sample, in proportion


def error_at(q: float, skewness: float, effects: float) -> float:
    """Standard errors by which a mean lies above the truth where Student's quantile says q."""
    c = -_factor(q * skewness < 0, effects) * skewness * q / 2
    return q * (sqrt(1.0 + c * c) + c)


def student_at(error: float, skewness: float, effects: float) -> float:
    """Student's t of a mean that lies so many standard errors above the truth: the inverse of `error_at`."""
    factor = _factor(error * skewness < 0, effects)
    return error / sqrt(max(1.0 - factor * skewness * error, SMALLEST))


def detectable_at(q: float, power: float, skewness: float, effects: float, *, agreed: bool = False) -> float:
    """Standard errors from 0 of the smallest truth above 0 that is found with this power.

    `q, power`: Student's quantiles of the test and of the power; their sum, where there is no skewness and effects are
    without number. The critical distance is `error_at` with the standard error of an unlucky sample, whose mean is low
    by `power` standard errors: it is larger where the tail is below. Where the effects are few and uneven, the standard
    error and the skewness of a sample vary much, and power takes more (by simulation, as the constants). `agreed`:
    Student's interval has to find it too.
    """
    critical = error_at(q, skewness, effects)
    unlucky = (max(critical, q) if agreed else critical) * sqrt(max(1.0 - power * skewness, UNLUCKY))
    if isinf(effects):
        return unlucky + power
    mixed = 1.0 - min(effects * skewness**2, 1.0)  # 0: all effects are equal and of one sign
    return unlucky + power * (1.0 + SURPLUS + UNEVEN * mixed * FEW / (FEW + effects))


def _factor(tail: bool, effects: float) -> float:
    """How much of the skewness counts on the side of the tail, or on the other."""
    if isinf(effects):
        return 1.0
    return 1.0 + min(1.0 / effects, LONG) if tail else effects / (effects + SHORT)
