"""How `make docs` makes a site of these pages, of Sphinx and MyST.

Pages stay where they are read in a checkout; the repository's root is the source folder, so that
links between pages hold in both. What has no place in the table of contents is a warning, and
warnings are errors.
"""

project = "Moorage"
author = "the Moorage maintainers"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/design/*.md",
    "docs/how-to/*.md",
    "docs/reference/*.md",
    "docs/*.svg",
    "docs/pictures/*",
    "INSTALL.md",
    "CHANGELOG.md",
    "deploy/webhook/README.md",
]
nitpicky = True
html_theme = "furo"
html_title = "Moorage"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_extra_path = ["site"]
myst_heading_anchors = 3
