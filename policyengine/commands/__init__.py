"""The command line: one file a command, thin. Exit codes: see `policyengine.commands.main`."""
