"""The page of a season: tables and plots in one file that needs nothing else, no script either."""

from seatwise_server.league.report.page import render_report

__all__ = ["render_report"]
