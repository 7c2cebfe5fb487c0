#!/usr/bin/env bash
# Instruction counts of fixed work (crates/dvim/examples/kernels.rs), which the load of the machine does not
# touch. Fails when a count is more than 15 % above the one recorded in bench/callgrind.json.
#
#   bench/callgrind.sh             compare
#   bench/callgrind.sh --record    measure and record
#
# valgrind knows no AVX-512: what is counted is the AVX2 path. To add a kernel: an arm in kernels.rs, a word here.
set -euo pipefail
cd "$(dirname "$0")/.."
kernels="search-learned search-learned-k800 search-equal search-ties likelihood curves"
recorded=bench/callgrind.json
allowed=15 # percent

cargo build --quiet --release -p dvim --example kernels
binary=${CARGO_TARGET_DIR:-target}/release/examples/kernels

count() { # instructions of `kernels NAME REPEATS`, on one thread
    RAYON_NUM_THREADS=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        sed -n 's/^==[0-9]*== Collected : \([0-9]*\).*/\1/p'
}

failed=0
lines=()
for kernel in $kernels; do
    now=$(($(count "$kernel" 1) - $(count "$kernel" 0)))
    lines+=("  \"$kernel\": $now")
    before=$(sed -n "s/^ *\"$kernel\": \([0-9]*\).*/\1/p" "$recorded" 2>/dev/null || true)
    if [[ -z $before ]]; then
        echo "$kernel: $now instructions, none recorded"
    else
        echo "$kernel: $now instructions, $before recorded ($(((now - before) * 100 / before)) %)"
        if ((now * 100 > before * (100 + allowed))); then failed=1; fi
    fi
done

if [[ ${1-} == --record ]]; then
    { echo "{"; printf '%s\n' "${lines[@]}" | sed '$!s/$/,/'; echo "}"; } >"$recorded"
elif ((failed)); then
    echo "a kernel needs more than $allowed % more instructions than recorded" >&2
    exit 1
fi
