"""AI Crosstalk: messages between AI assistants and people that survive copy and paste, with signatures and relays."""

from . import _async_relay, _envelope, _error, _forms, _relay
from ._async_relay import *
from ._envelope import *
from ._error import *
from ._forms import *
from ._relay import *

__all__ = [*_async_relay.__all__, *_envelope.__all__, *_error.__all__, *_forms.__all__, *_relay.__all__]
