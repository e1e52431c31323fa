"""Containers of JavaScript: ASAR archives, folders, npm tarballs and single source files, behind one protocol."""
