"""English words that say nothing about what a text is about. Knows the list; knows nothing of tokens or stems."""

_LIST = """
a about above after again against all also am an and any are aren as at be because been before being below between both but by can
cannot could couldn did didn do does doesn doing don done down during each either else etc ever few for from further get gets getting
go goes going gone got had hadn has hasn have haven having he hence her here hers herself him himself his how however i if in into is
isn it its itself just let like ll m many may me might mine more most much must mustn my myself neither no nor not now of off ok okay
on once one only onto or other ought our ours ourselves out over own per please quite rather re really s same shall shan she should
shouldn since so some such t than thanks that the their theirs them themselves then there these they this those though through thus to
too under until up upon us ve very via was wasn we well were weren what when where whether which while who whom whose why will with
within without would wouldn yes yet you your yours yourself yourselves
"""
STOP_WORDS: frozenset[str] = frozenset(_LIST.split())
"""`may` stands here as the verb; as a month it is found by `text.dates`."""
