"""A worker that knows the file table and nothing of Tandem: plain Python, no imports beyond the standard library.

Usage: foreign_worker.py DIR
"""

import os
import sys
import time


def rows(path):
    """The lines of a file as lists of integers; comments and blank lines are passed over."""
    with open(path) as lines:
        return [[int(word) for word in line.split()] for line in lines if line.strip() and not line.startswith("#")]


def relax(edges, value):
    """value = min(value, value of a predecessor + 1), until nothing changes."""
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            if source in value and value[source] + 1 < value.get(target, 2**31):
                value[target] = value[source] + 1
                changed = True


def serve(folder):
    edges = rows(os.path.join(folder, "mind_graph.txt"))
    value = dict(rows(os.path.join(folder, "value.txt")))
    relax(edges, value)
    temporary = os.path.join(folder, "data.txt.tmp")
    with open(temporary, "w") as data:
        data.writelines(f"{vertex} {distance}\n" for vertex, distance in value.items())
    os.rename(temporary, os.path.join(folder, "data.txt"))
    open(os.path.join(folder, "ok.flag"), "x").close()


def main(directory):
    while not os.path.exists(os.path.join(directory, "stop.flag")):
        for name in sorted(os.listdir(directory)):
            if name.startswith("round-"):
                there = os.listdir(os.path.join(directory, name))
                if "value.txt" in there and "ok.flag" not in there and "stop.flag" not in there:
                    serve(os.path.join(directory, name))
        time.sleep(0.005)


if __name__ == "__main__":
    main(sys.argv[1])
