#!/bin/sh
# backup.sh STORE.sqlite COPY.sqlite: a copy of a collector's store while it runs.
# Keep one copy and replace it: the difference of two tells which reports came in between.
set -eu
store=${1:?the store}
copy=${2:?where the copy goes}
[ -f "$store" ] || { echo "no store at $store" >&2; exit 2; }
umask 077 # the copy is for its owner alone, as the store is
new=$copy.new
rm -f "$new"
python3 - "$store" "$new" <<'PYTHON'
import sqlite3, sys
from contextlib import closing
with closing(sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)) as store, closing(sqlite3.connect(sys.argv[2])) as copy:
    store.backup(copy)
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
PYTHON
sync "$new"
mv "$new" "$copy" # whole or not at all
