"""What the subcommands of the command line do. ``cli.py`` knows the options, this package the work."""
