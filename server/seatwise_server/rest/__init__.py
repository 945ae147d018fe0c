"""The REST door: the operations of the services layer, over HTTP and JSON."""
