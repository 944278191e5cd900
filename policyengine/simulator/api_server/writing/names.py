"""Names and UIDs the server chooses, from a seeded generator, so that a run can be repeated byte for byte."""

import random

# k8s.io/apimachinery's rand.String leaves out vowels and look-alikes.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_NAME = 63


class Names:
    """The server's choices; equal seeds choose equally."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A version 4 UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[self._random.getrandbits(2)]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def generate(self, base: str) -> str:
        """`base` with five random characters, cut so that the whole stays within 63."""
        suffix = "".join(self._random.choices(ALPHABET, k=SUFFIX_LENGTH))
        return base[: MAX_NAME - SUFFIX_LENGTH] + suffix
