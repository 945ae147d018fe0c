"""The page of a season: tables and plots in one file that needs nothing else, no script either."""

from seatwise_server.league.report.page import report_page

__all__ = ["report_page"]
