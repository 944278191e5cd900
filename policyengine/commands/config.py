"""`policyengine config`: what `policyengine run` would run with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from policyengine.commands.run_options import configuration_options, effective


@click.command()
@configuration_options
@click.option("--schema", is_flag=True, help="Print the JSON schema of the file instead.")
def config(config: Path | None, params: dict[str, str], verbose: bool, schema: bool, **fields: Any) -> None:
    """Check a configuration and print it with every default, as `policyengine run` with the same flags would use it."""
    import json

    import yaml

    from policyengine.kube.config import configuration

    if schema:
        click.echo(json.dumps(configuration.schema(), indent=2))
        return
    data = effective(config, params, verbose, fields).data
    click.echo(yaml.safe_dump(dict(data), sort_keys=False, default_flow_style=False, allow_unicode=True), nl=False)
