"""Release: from a person's record to a report, with exactly the probabilities of the table.

This is how random bits become a report. All numbers are integers, k is the `bits` of the table. A
*word* is 64 random bits, of which the k highest are used: x = word >> (64 - k).

**A row** N[0], N[1], ... with sum 2^k becomes 2^j buckets of c = 2^(k-j) words each, where
j = min(k, max(1, ⌈log2 n⌉)) and n is the length of the row. Its outputs, those with N > 0 first and
then the others, each in ascending order, are the items 0, 1, ...; items with N = 0 fill up to
2^j - 1. Item i owns bucket i. With R = N of the items:

    small = items with R < c, ascending;  large = items with R ≥ c, ascending
    current = first of small
    until there is no current:
        other = first of large
        threshold[current], alias[current] = R[current], other
        R[other] -= c - R[current]
        if R[other] < c:  current = other, which leaves large
        else:             current = next of small, none where all are done
    every item without a threshold gets threshold c and alias itself

A word picks bucket b = x >> (k - j) at place x mod c: item b if place < threshold[b], else
alias[b]. Of all 2^k values of x exactly N[y] give y, so a uniform word gives y with probability
N[y] / 2^k: no rounding, no rejection, the same work for every word and every record.

**A record** (s, u) takes a fixed number of words, whatever it holds:

    channel       words       rows                                      report
    dense         1           Q[s, u]                                   y
    choice        1           other, with block s replaced by own[s,u]  y = b n_z + z
    independent   2           r_s[s] by word 0, r_u[u] by word 1        y = y_0 n_1 + y_1
    unary         1 per block own[s, u] if (s, u) is of block b,        z - 1 for each b,
                              else other[b], by word b                  -1 is silence

The row of a choice channel is read over all pairs (b, z) with z varying fastest, and n_1 is the
number of columns of r_u. Records take their words in order: record i of m words each takes the
words m i, ..., m i + m - 1 of the stream. The module `randomness` makes the words.

Modules; `mixin`, `sampler`, `alias_table`, `randomness` and `cmac` need NumPy alone.

mixin            `p.release` and `p.refresh`
release_file     the same for files, batch by batch
frames           frames and dicts
encode           labels → codes, and ids
keeping          which columns may stand beside a report
randomness       random words, and keys on disk
cmac             words from the ids of records under a key
sampler          codes and words → reports, and what a release needs from a protocol
alias_table      one word → one output of a row
report_labels    reports ⇄ their texts; texts that a spreadsheet would run
writers          batches → files, in random order where asked
several_reports  fresh reports from one kept answer; two reports of a record that changed
"""
