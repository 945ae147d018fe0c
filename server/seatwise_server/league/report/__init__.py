"""The page of a season: tables and plots in one file, which needs neither other files nor scripts."""

from seatwise_server.league.report.page import render_report

__all__ = ["render_report"]
