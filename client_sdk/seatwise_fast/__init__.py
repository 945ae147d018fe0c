"""UGO! compiled: the rules for one table or thousands at once, and a search on them.

This package is optional, and nothing breaks without it. It is built where a C compiler is, and installed by itself:

    pip install ./client_sdk/seatwise_fast

The referee is the authority over the rules and never uses this package; tests compare the two move by move.

- `FastTable`: one match, for programs that play many of them one by one.
- `seatwise_fast.fast_batch.UgoBatch`: thousands of matches at once, in NumPy arrays; `seatwise.rl.open_batch` begins them.
- `seatwise_fast.counted_deals.CountedDeals`: the deals of the samples `counting` and `counting-ahead`.
- `search_card`, `sample_worlds`: a search for the best card of a view, and deals that fit a view.
"""

from __future__ import annotations

from seatwise_fast.card_search import SearchReport, sample_worlds, search_card
from seatwise_fast.fast_table import FastTable

__all__ = ["FastTable", "SearchReport", "sample_worlds", "search_card"]
