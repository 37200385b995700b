"""Other people's servers, played: small, and usable by hand too."""
