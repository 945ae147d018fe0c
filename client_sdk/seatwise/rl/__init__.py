"""Training of bots: environments, batches of matches, and data sets from records. Needs the extra `rl`.

From a clone of the project: `pip install '.[rl]'`.

- `seatwise.rl.ugo_v1`: UGO! as an environment of PettingZoo.
- `seatwise.rl.ugo_vector`, `seatwise.rl.ubongo_v1`: environments of Gymnasium. `seatwise.rl.openspiel_ugo`: a game of OpenSpiel.
- `seatwise.rl.dataset`: records as arrays.
- `open_batch`: thousands of matches of UGO! at once. It needs the compiled rules of `seatwise_fast`.
- `encode_view`, `seatwise.rl.actions`: the one encoding of a view, and of moves as numbers.
"""

from __future__ import annotations

from seatwise.rl.deals import open_batch
from seatwise.rl.observation import encode_view, observation_layout, observation_size

__all__ = ["encode_view", "observation_layout", "observation_size", "open_batch"]
