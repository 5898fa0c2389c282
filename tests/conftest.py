"""What holds for every test: laws are judged by what they find, not by how busy the machine is."""

from hypothesis import settings

settings.register_profile("pandora", deadline=None)
settings.load_profile("pandora")
