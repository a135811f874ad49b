"""The command line. Modules import what they need inside commands, so that ``icewright --help`` stays quick."""
