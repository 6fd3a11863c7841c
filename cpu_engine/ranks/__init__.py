"""What all algorithms on a partitioned graph share."""
