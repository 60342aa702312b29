"""From the labels of judges to statements about how models frame their answers."""
