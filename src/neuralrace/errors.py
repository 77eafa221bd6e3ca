"""Errors that are the user's to mend."""


class UserError(Exception):
    """Something outside the code is wrong: a key, a file, a disk.

    The message names the file, the key, the value and the remedy. It is shown without a traceback.
    """
