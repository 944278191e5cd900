"""`policyengine rewards --show`: what was learnt, with totals, without a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner

from policyengine.commands.rewards import rewards
from policyengine.kube.stores import SqliteStore
from policyengine.server.rewards.book import Book, Reward, dump


def shown(path: Path) -> list[str]:
    result = CliRunner().invoke(rewards, ["--show", "--state", str(path)])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_every_reward_and_the_totals_are_a_line_each(tmp_path: Path) -> None:
    book = Book(pairs={("team/web", "node-1"): Reward(0.9, 0.0)})
    book.nodes["node-1"], book.groups["team/web"] = Reward(0.81, 0.0), Reward(0.5, 0.0)
    store = SqliteStore(tmp_path / "rewards.sqlite")
    asyncio.run(store.save(dump(book)))
    store.close()
    assert [line.split() for line in shown(tmp_path / "rewards.sqlite")] == [
        ["team/web", "node-1", "0.900"],
        ["team/web", "(all", "nodes)", "0.500"],
        ["(all", "groups)", "node-1", "0.810"],
    ]


def test_where_nothing_was_learnt_it_says_so(tmp_path: Path) -> None:
    assert shown(tmp_path / "new.sqlite") == ["nothing was learnt yet"]
