"""tantivy: an index in memory of texts with its default tokenizer; the best ten for any of the words of a question."""

import json
import sys
import time
from pathlib import Path

import tantivy

index = None
for line in sys.stdin:
    request = json.loads(line)
    if "build" in request:
        texts = json.loads(Path(request["build"]).read_text())
        started = time.perf_counter()
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("number", stored=True)
        builder.add_text_field("text", stored=False)
        index = tantivy.Index(builder.build())
        writer = index.writer(64_000_000, 1)
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(number=number, text=text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        answer = {"seconds": time.perf_counter() - started}
    else:
        searcher = index.searcher()
        started = time.perf_counter()
        found = []
        for question in request["ask"]:
            query = index.parse_query(question, ["text"])
            hits = searcher.search(query, 10).hits
            found.append([searcher.doc(address)["number"][0] for _, address in hits])
        answer = {"seconds": time.perf_counter() - started, "found": found}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
