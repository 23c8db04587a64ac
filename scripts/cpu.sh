#!/usr/bin/env bash
# Says beforehand if this CPU cannot show a gain.
source "$(dirname "$0")/lib.sh"

grep -qw avx512ifma /proc/cpuinfo ||
    say "This CPU has no AVX-512 IFMA: hasten will leave the server as it is, and the table will say \"no difference\"." \
        "For a gain use Intel Ice Lake or later, or AMD Zen 4 or later."
