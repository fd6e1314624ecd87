"""The English words that say nothing of what a text is about, without their apostrophes."""

from __future__ import annotations

_ENGLISH = """
a about above after again against all also am an and any are arent as at be because been before being below
between both but by can cannot cant could couldnt d did didnt do does doesnt doing dont down during each few for
from further had hadnt has hasnt have havent having he hed hell her here heres hers herself hes him himself his
how hows i id if ill im in into is isnt it its itself ive lets ll m me more most mustnt my myself no nor not of
off on once only or other ought our ours ourselves out over own re s same shant she shed shes should shouldnt so
some such t than that thats the their theirs them themselves then there theres these they theyd theyll theyre
theyve this those through to too under until up us ve very was wasnt we wed were werent weve what whats when
whens where wheres which while who whom whos whose why whys will with wont would wouldnt you youd youll your
youre yours yourself yourselves youve
"""
STOP_WORDS = frozenset(_ENGLISH.split())
