"""How much a reader needs each unit of a text: general features and a small table of fitted weights."""
