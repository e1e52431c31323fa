"""Folders of documents: text, Markdown, HTML, PDF and source, in chunks that are searched by words and by meaning.

| you look for                           | it is in               |
|----------------------------------------|------------------------|
| which files are read, and which not    | `folder.py`            |
| how a file becomes text with places    | `reading/`             |
| how text becomes chunks                | `chunks.py`            |
| what is kept, and read only once       | `library.py`           |
| search by meaning                      | `vectors.py`           |
"""
