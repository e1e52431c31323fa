"""Control flow as pictures: what is drawn (`picture`, `outline`), and in which language (`dot`, `mermaid`, `svg`)."""
