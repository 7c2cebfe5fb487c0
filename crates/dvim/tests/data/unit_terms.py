"""Reference values of one unit's log-likelihood and its derivatives (likelihood.rs, UNIT_TERMS).

    pip install mpmath==1.3.0 && python unit_terms.py

Values by the definition of the density, derivatives by mpmath's numerical differentiation of it, with 80 digits.
"""
from mpmath import mp, mpf, erfc, exp, log, sqrt, pi, inf, diff

mp.dps = 80


def cdf(x):
    return mpf(1) if x == inf else erfc(-x / sqrt(mpf(2))) / 2


def value(seen, u, u_horizon, a, m, t):
    s = exp(t)
    p = 1 / (1 + exp(-a))
    if seen == "Horizon":
        return log(p)
    h = inf if u_horizon == inf else (u_horizon - m) / s
    z = (u - m) / s
    if seen == "Event":
        return log(1 / (1 + exp(a))) - z * z / 2 - log(2 * pi) / 2 - t - log(cdf(h))
    return log(1 - (1 - p) * cdf(z) / cdf(h))


ORDERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]
POINTS = []
for seen in ("Event", "Censored"):
    for u, u_horizon, a, m, t in [
        (0.3, 1.2, 0.4, 0.1, -0.2),  # ordinary
        (-2.0, 1.2, -3.0, 0.5, 0.1),
        (1.1, 1.2, 2.0, -2.0, -1.0),  # in the upper tail, close to the horizon
        (0.9, 1.2, -5.0, -8.0, 0.0),  # far in the upper tail
        (1.0, 1.2, -30.0, -8.0, -1.0),  # and surely uncured
        (0.5, 1.2, 0.3, 30.0, 1.0),  # horizon far in the lower tail
        (0.5, 1.2, -2.0, 400.0, 3.0),  # the power law limit
        (1.1999, 1.2, -1.0, 0.5, 0.0),  # lost just before the horizon
        (0.2, 1.2, 1.0, 0.20001, -4.0),  # small spread
        (0.2, inf, 0.5, 0.0, 0.3),
        (6.0, inf, -1.0, 0.0, -1.0),
        (-9.0, inf, -1.0, 1.0, 0.0),
        (0.2, 45.0, 0.5, 0.0, 0.0),  # finite horizon beyond every digit
    ]:
        POINTS.append((seen, u, u_horizon, a, m, t))
POINTS += [("Horizon", 0.0, 1.2, a, 0.0, 0.0) for a in (-40.0, 0.7, 40.0)]


def rust(x):
    return "f64::INFINITY" if x == float("inf") else repr(float(x))


for seen, u, u_horizon, a, m, t in POINTS:
    u_, h_ = mpf(u), mpf(u_horizon) if u_horizon != inf else inf
    f = lambda a, m, t: value(seen, u_, h_, a, m, t)
    terms = [f(mpf(a), mpf(m), mpf(t)) if k == (0, 0, 0) else diff(f, (mpf(a), mpf(m), mpf(t)), k) for k in ORDERS]
    terms = [0 if abs(x) < mpf(10) ** -40 else x for x in terms]
    row = ", ".join(rust(x) for x in terms)
    print(f"        (Seen::{seen}, {u!r}, {rust(u_horizon)}, {a!r}, {m!r}, {t!r}, [{row}]),")
