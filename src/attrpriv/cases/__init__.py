"""What an assumption says of the statistics that are asked for, given a value of the secret."""
