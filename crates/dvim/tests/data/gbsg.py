"""The maximum of the log-normal mixture cure likelihood (no horizon) of gbsg, by Newton's method with 30 digits.

    pip install mpmath==1.3.0 && python gbsg.py /tmp/dvim-data/gbsg.csv

Prints probability of cure, its standard error, (logit, location, ln sigma), their standard errors, log-likelihood.
"""
import csv
import sys
from mpmath import mp, mpf, erfc, log, exp, sqrt, pi, matrix, diff, lu_solve
mp.dps=30
rows=list(csv.DictReader(open(sys.argv[1])))
from collections import Counter
c=Counter((int(r["rfstime"]),int(r["status"])) for r in rows)
def f(a,m,t):
    s=exp(t); p=1/(1+exp(-a)); v=mpf(0)
    for (y,d),k in c.items():
        ly=log(mpf(y)); z=(ly-m)/s
        if d: v+=k*(log(1-p)-z*z/2-log(2*pi)/2-t-ly)
        else: v+=k*log(p+(1-p)*erfc(z/sqrt(mpf(2)))/2)
    return v
x=[mpf("-0.957"),mpf("6.98243"),mpf("-0.0934")]
h=mpf(10)**-8
def grad_hess(x):
    f0=f(*x); g=matrix(3,1); H=matrix(3,3)
    def at(d): return f(*[x[i]+d[i]*h for i in range(3)])
    e=[[int(i==j) for j in range(3)] for i in range(3)]
    up=[at(v) for v in e]; dn=[at([-q for q in v]) for v in e]
    for i in range(3):
        g[i]=(up[i]-dn[i])/(2*h); H[i,i]=(up[i]-2*f0+dn[i])/h**2
        for j in range(i):
            w=[e[i][k]+e[j][k] for k in range(3)]; q=[e[i][k]-e[j][k] for k in range(3)]
            H[i,j]=H[j,i]=(at(w)+at([-k for k in w])-at(q)-at([-k for k in q]))/(4*h*h)
    return f0,g,H
for it in range(4):
    f0,g,H=grad_hess(x)
    d=lu_solve(-H,g); x=[x[i]+d[i] for i in range(3)]
f0,g,H=grad_hess(x)
C=(-H)**-1
p=1/(1+exp(-x[0]))
print(mp.nstr(p,15), mp.nstr(p*(1-p)*sqrt(C[0,0]),12), [mp.nstr(v,15) for v in x],[mp.nstr(sqrt(C[i,i]),12) for i in range(3)], mp.nstr(f0,15))
