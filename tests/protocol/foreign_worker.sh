#!/bin/sh
# A worker that knows the file table and nothing of Tandem: POSIX shell and awk.
# Usage: foreign_worker.sh DIR
dir=$1
until [ -e "$dir/stop.flag" ]; do
  for round in "$dir"/round-*; do
    [ -e "$round/value.txt" ] && [ ! -e "$round/ok.flag" ] && [ ! -e "$round/stop.flag" ] || continue
    awk '
      BEGIN           { n = 0 }
      /^[ \t]*(#|$)/  { next }                             # comments and blank lines
      file == "core"  { source[n] = $1; target[n] = $2; n++; next }
      file == "value" { value[$1] = $2 + 0 }
      END {
        do {
          changed = 0
          for (i = 0; i < n; i++)
            if (source[i] in value) {
              v = value[source[i]] + 1
              if (!(target[i] in value) || v < value[target[i]]) { value[target[i]] = v; changed = 1 }
            }
        } while (changed)
        for (vertex in value) print vertex, value[vertex]
      }' file=core "$round/mind_graph.txt" file=value "$round/value.txt" > "$round/data.txt.tmp" &&
    mv "$round/data.txt.tmp" "$round/data.txt" &&
    touch "$round/ok.flag"
  done
  sleep 0.02 2>/dev/null || sleep 1                        # fractions are not POSIX
done
