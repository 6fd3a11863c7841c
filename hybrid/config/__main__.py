"""``python -m hybrid.config``: print docs/reference/configuration.md."""

from hybrid.config import configuration_page

print(configuration_page(), end="")
