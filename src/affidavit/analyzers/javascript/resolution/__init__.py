"""Where a specifier leads, as Node.js finds it, without leaving the container."""
