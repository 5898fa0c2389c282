"""The cookbook as the command line looks after it: checked, listed, generated. Opens no store and no runtime."""
