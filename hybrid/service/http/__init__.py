"""The HTTP side of the service: routes, access, connections, problem documents."""
