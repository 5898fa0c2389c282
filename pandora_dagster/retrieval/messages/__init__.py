"""Search among messages: windows around hits, speakers, relevance, search results."""
