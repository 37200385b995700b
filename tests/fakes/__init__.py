"""Small fake servers of third parties, also usable by hand."""
