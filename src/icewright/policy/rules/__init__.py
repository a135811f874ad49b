"""Policy files: rules, revisions, tests of policies."""
