"""Reference values of one unit's log-likelihood and its derivatives for Weibull, log-logistic and generalised gamma times (likelihood.rs).

    pip install mpmath==1.3.0 && python unit_terms_families.py > unit_terms_families.txt

Values by the definition of the density, derivatives by mpmath's numerical differentiation of it, with 80 digits. A line holds
family, kind, u, u_horizon, a, m, t and the terms value, a, m, t, aa, am, at, mm, mt, tt.
"""
from functools import partial

from mpmath import diff, exp, expm1, gamma, gammainc, inf, log, log1p, mp, mpf

mp.dps = 80
CDF = {"Weibull": lambda z: -expm1(-exp(z)), "LogLogistic": lambda z: 1 / (1 + exp(-z))}
LOG_DENSITY = {"Weibull": lambda z: z - exp(z), "LogLogistic": lambda z: -z - 2 * log1p(exp(-z))}


# A generalised gamma variable of shape q: a power of a gamma variable (Prentice 1974).
def gamma_cdf(q, z):
    a = 1 / q**2
    x = a * exp(q * z)
    return gammainc(a, 0, x, regularized=True) if q > 0 else gammainc(a, x, inf, regularized=True)


def gamma_log_density(q, z):
    a = 1 / q**2
    return log(abs(q)) + a * log(a) - log(gamma(a)) + a * (q * z - exp(q * z))


for q in ("0.25", "0.7", "1.6", "-0.5", "-1.2"):
    CDF[f"GeneralisedGamma:{q}"] = partial(gamma_cdf, mpf(q))
    LOG_DENSITY[f"GeneralisedGamma:{q}"] = partial(gamma_log_density, mpf(q))


def value(family, seen, u, u_horizon, a, m, t):
    s = exp(t)
    p = 1 / (1 + exp(-a))
    at_horizon = mpf(1) if u_horizon == inf else CDF[family]((u_horizon - m) / s)
    z = (u - m) / s
    if seen == "Event":
        return log(1 / (1 + exp(a))) + LOG_DENSITY[family](z) - t - log(at_horizon)
    return log(1 - (1 - p) * CDF[family](z) / at_horizon)


ORDERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]
POINTS = [
    (0.3, 1.2, 0.4, 0.1, -0.2),  # ordinary
    (-2.0, 1.2, -3.0, 0.5, 0.1),
    (1.1, 1.2, 2.0, 0.3, -1.0),  # in the upper tail, close to the horizon
    (0.9, 1.2, -5.0, -1.0, 0.0),
    (1.0, 1.2, -3.0, -1.5, -0.5),  # far in the upper tail
    (0.5, 1.2, 0.3, 30.0, 1.0),  # horizon far in the lower tail
    (0.5, 1.2, -2.0, 400.0, 3.0),  # the power law limit
    (1.1999, 1.2, -1.0, 0.5, 0.0),  # lost just before the horizon
    (0.2, 1.2, 1.0, 0.20001, -3.0),  # small spread
    (0.2, inf, 0.5, 0.0, 0.3),
    (1.5, inf, -1.0, 0.0, -0.2),
    (-9.0, inf, -1.0, 1.0, 0.0),
    (0.2, 45.0, 0.5, 0.0, 0.0),  # finite horizon beyond every digit
]
for family in CDF:
    for seen in ("Event", "Censored"):
        for u, u_horizon, a, m, t in POINTS:
            # Of a negative shape there is nothing so far below: F is exp(-84,000) there.
            if family.startswith("GeneralisedGamma:-") and m == 400.0:
                continue
            u_, h_ = mpf(u), inf if u_horizon == inf else mpf(u_horizon)
            f = lambda a, m, t: value(family, seen, u_, h_, a, m, t)
            at = (mpf(a), mpf(m), mpf(t))
            terms = [f(*at) if k == (0, 0, 0) else diff(f, at, k) for k in ORDERS]
            terms = [0 if abs(x) < mpf(10) ** -40 else x for x in terms]
            print(family, seen, u, "inf" if u_horizon == inf else u_horizon, a, m, t, *(repr(float(x)) for x in terms))
