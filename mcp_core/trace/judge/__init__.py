"""The judge: recorded conversations against the requirements of the specification."""
