"""The judge: recorded conversations against the specification's requirements."""
