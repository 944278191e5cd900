"""`overlay "name" on "policy"`: which policy each of the overlays is on."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.language import syntax
from policyengine.language.checking.check_codes import DUPLICATE_NAME, WRONG_OVERLAY, WRONG_WORD
from policyengine.language.checking.context import replacing
from policyengine.language.checking.libraries import File
from policyengine.language.diagnostics import Related


class Overlays:
    """The overlays of the files that are loaded together, by the policies they are on."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files
        self._on: dict[int, list[tuple[File, syntax.Overlay]]] = {}
        for file in files:
            for overlay in file.tree.overlays:
                policy = self._meant(file, overlay)
                if policy is not None and self._named(file, overlay, policy):
                    self._on.setdefault(id(policy), []).append((file, overlay))

    def on(self, file: File, policy: syntax.Policy) -> list[tuple[File, syntax.Overlay]]:
        """The overlays on a policy, in the order of files and lines."""
        return self._on.get(id(policy), [])

    def _meant(self, file: File, overlay: syntax.Overlay) -> syntax.Policy | None:
        """The policy of that name in the file itself, else the one in another file."""
        name = overlay.policy
        named = [
            (other, policy) for other in self._files for policy in other.tree.policies if policy.name.text == name.text
        ]
        found = [pair for pair in named if pair[0] is file] or named
        if len(found) == 1:
            return found[0][1]
        if found:
            places = " and ".join(f"`{other.source.file}`" for other, _ in found[:2])
            file.report.error(WRONG_OVERLAY, f"two policies are called `{name.text}`: in {places}", name.span)
            return None
        known = [policy.name.text for other in self._files for policy in other.tree.policies]
        close = file.report.closest(name.text, known)
        hint = f"; did you mean `{close}`?" if close else ""
        message = f"no policy is called `{name.text}` in the files that are loaded together{hint}"
        file.report.error(WRONG_OVERLAY, message, name.span, replacing(name.span, f'"{close}"') if close else None)
        return None

    def _named(self, file: File, overlay: syntax.Overlay, policy: syntax.Policy) -> bool:
        """Whether the overlay has a name of its own."""
        name = overlay.name
        if not name.text.strip():
            file.report.error(WRONG_WORD, "an overlay has a name", name.span)
            return False
        for other, earlier in self._on.get(id(policy), []):
            if earlier.name.text == name.text:
                related = (Related(earlier.name.span, "taken here"),) if other is file else ()
                message = f"another overlay on `{policy.name.text}` is called `{name.text}`"
                file.report.error(DUPLICATE_NAME, message, name.span, related=related)
                return False
        return True
