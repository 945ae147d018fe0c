"""Checks whether a bot in any language speaks the protocol: `seatwise doctor -- COMMAND {address}`.

A scripted server (`scripted_server.py`) plays a lobby and a referee that do what a check tells them. `checks.py` has the checks,
`examination.py` the steps that they are made of, and `doctor.py` runs them, each with a fresh bot.
"""
