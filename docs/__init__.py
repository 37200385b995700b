"""The documentation: pages, the code that draws their pictures, and the site built from them."""
