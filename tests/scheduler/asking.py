"""A scheduler with extenders, and what it has asked them."""

from __future__ import annotations

from typing import Any

from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.scheduler.actions import Action, AskAboutVictims, AskExtenders
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.messages import CacheSynced, ExtendersAnswered
from policyengine.scheduler.state import SchedulerState
from tests.scheduler.driver import Driver


class Asking(Driver):
    def __init__(self, *extenders: Extender, profiles: tuple[Profile, ...] = ()) -> None:
        super().__init__(synced=False)
        self.state = SchedulerState(profiles or (default_profile(),), extenders)
        self.asked: list[AskExtenders] = []
        self.about_victims: list[AskAboutVictims] = []
        super().send(CacheSynced())

    def send(self, message: Any) -> list[Action]:
        actions = super().send(message)
        if hasattr(self, "about_victims"):
            self.asked += [action for action in actions if isinstance(action, AskExtenders)]
            self.about_victims += [action for action in actions if isinstance(action, AskAboutVictims)]
        return actions

    def answer(self, at: int = -1, **said: Any) -> list[Action]:
        return self.send(ExtendersAnswered(self.asked.pop(at), **said))
