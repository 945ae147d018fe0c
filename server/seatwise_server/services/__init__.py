"""The methods of the API, independent of the door that a call comes by: plain functions between doors and store.

Each proto service is one class here. Each of its methods takes the caller and the request message, and returns the response
message or raises `Refusal`. The doors only decode, call and encode. `access.py` lists the right that each method needs.
"""
