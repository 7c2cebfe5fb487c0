"""Generalised gamma fits by lifelines, for gamma.rs: the first line of a sample holds n, the horizonless optimum (mu, ln sigma, lambda) and its
log-likelihood, the second the times; after an empty line, SciPy's distribution functions at some points.

    pip install lifelines==0.30.3 scipy==1.17.1 && python generalised_gamma.py > generalised_gamma.txt
"""
import numpy as np
from lifelines import GeneralizedGammaFitter
from scipy.stats import gengamma

# exp(mu) (G/a)^(sigma/q), a = 1/q^2: SciPy's gengamma(a, c) with c = q/sigma and scale exp(mu) a^(-sigma/q).
def distribution(mu, sigma, q):
    a = 1 / q**2
    return gengamma(a, q / sigma, scale=np.exp(mu) * a ** (-sigma / q))


for seed, (mu, sigma, q) in enumerate([(4.0, 0.8, 0.6), (3.0, 0.5, 1.5), (4.5, 0.7, -0.8)]):
    times = distribution(mu, sigma, q).rvs(400, random_state=np.random.default_rng(seed)).round(6)
    fit = GeneralizedGammaFitter().fit(times)
    print(len(times), repr(float(fit.mu_)), repr(float(fit.ln_sigma_)), repr(float(fit.lambda_)), repr(float(fit.log_likelihood_)))
    print(*times)
print()
for mu, sigma, q in [(4.0, 0.8, 0.6), (3.0, 0.5, 1.5), (4.5, 0.7, -0.8), (2.0, 0.4, 0.4), (2.0, 0.3, -0.15)]:
    for t in (2.0, 7.0, 20.0, 55.0, 150.0, 600.0):
        d = distribution(mu, sigma, q)
        print(mu, sigma, q, t, repr(float(d.logpdf(t))), repr(float(d.cdf(t))), repr(float(d.sf(t))))
