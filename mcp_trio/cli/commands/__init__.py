"""One file per subcommand, and what several of them share."""
