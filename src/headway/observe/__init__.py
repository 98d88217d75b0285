"""OBSERVE: what Headway tells about itself while it works."""
