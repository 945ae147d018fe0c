"""What the API does, whichever door it is called by: plain functions between the doors and the store.

Each proto service is one class here. Each of its methods takes the caller and the request message, and returns the
response message or raises `Refusal`. The doors only decode, call and encode. `access.py` says who may call what.
"""
