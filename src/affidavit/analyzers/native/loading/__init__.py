"""Reading the file: headers, segments, symbols, relocations, unwind tables. No code is decoded here but stubs."""
