"""networkx: a view without the avoided nodes, and its shortest path (from both ends, any of several)."""

import json
import sys
import time

import networkx as nx

graph = nx.DiGraph()


def ask(start: int, goal: int, avoid: list[int]) -> int:
    try:
        left = nx.restricted_view(graph, avoid, []) if avoid else graph
        return len(nx.shortest_path(left, start, goal)) - 1
    except nx.NetworkXNoPath:
        return -1


for line in sys.stdin:
    request = json.loads(line)
    answer = {}
    if "graph" in request:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(request["graph"]["blocks"]))
        graph.add_edges_from(request["graph"]["edges"])
    else:
        started = time.perf_counter()
        lengths = [ask(**one) for one in request["questions"]]
        answer = {"seconds": time.perf_counter() - started, "lengths": lengths}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
