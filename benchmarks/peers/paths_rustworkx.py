"""rustworkx: a copy without the avoided nodes, and Dijkstra's algorithm with equal weights; it has no exclusions."""

import json
import sys
import time

import rustworkx

graph = rustworkx.PyDiGraph()


def ask(start: int, goal: int, avoid: list[int]) -> int:
    left = graph
    if avoid:
        left = graph.copy()
        left.remove_nodes_from(avoid)
    path = rustworkx.dijkstra_shortest_paths(left, start, goal, default_weight=1.0)
    return len(path[goal]) - 1 if goal in path else -1


for line in sys.stdin:
    request = json.loads(line)
    answer = {}
    if "graph" in request:
        graph = rustworkx.PyDiGraph()
        graph.add_nodes_from(range(request["graph"]["blocks"]))
        graph.add_edges_from_no_data([tuple(edge) for edge in request["graph"]["edges"]])
    else:
        started = time.perf_counter()
        lengths = [ask(**one) for one in request["questions"]]
        answer = {"seconds": time.perf_counter() - started, "lengths": lengths}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
