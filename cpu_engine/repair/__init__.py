"""Every algorithm once more, the textbook way: the independent path that repairs a failed proof."""
