"""Pictures: what is drawn, as data (`marks`), and two writers: SVG for pages and files, matplotlib for notebooks and PNG."""
