"""What is to be measured, as frozen data: the experiment, its cells, their order and their
duration."""
