"""`kaspar completion`: prints the shell completion script."""

from typing import Final

import click

from kaspar.cli.command import Command

_EXAMPLES: Final = """\
examples:
  eval "$(kaspar completion bash)"                                          in ~/.bashrc
  eval "$(kaspar completion zsh)"                                           in ~/.zshrc, after compinit
  kaspar completion fish > ~/.config/fish/completions/kaspar.fish           once
"""


@click.command("completion", cls=Command, epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL. It completes commands, options, and names of topics, groups and
    profiles."""
    from click.shell_completion import get_completion_class

    from kaspar.cli.main import COMPLETION_VARIABLE, kaspar

    completion = get_completion_class(shell)
    assert completion is not None
    print(completion(kaspar, {}, "kaspar", COMPLETION_VARIABLE).source())
