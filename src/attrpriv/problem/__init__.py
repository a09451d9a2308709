"""What must look alike: secrets, pairs and the problem. No data, no noise."""
