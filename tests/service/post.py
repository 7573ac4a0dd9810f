"""A postman for tests, with keys of its own."""

from maitred.service.delivery import Postman
from maitred.service.keyring import Keys
from maitred.service.signing import Signer
from maitred.store.memory_keyring import MemoryKeyring


def postman(keys: Keys | None = None, *, patience: float = 15.0) -> Postman:
    """Give one who signs with these keys, or with some that nobody knows."""
    return Postman(Signer(keys or Keys(MemoryKeyring())), patience=patience)
