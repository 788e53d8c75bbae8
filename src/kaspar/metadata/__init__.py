"""What the cluster knows of itself: the store, the image, the controller."""
