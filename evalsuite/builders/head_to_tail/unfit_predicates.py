"""Predicates of DBpedia that are not asked about, for the paper's reasons, and those that are asked about otherwise.

The paper leaves out attributes that are unspecific, dynamic, specific to the source, or no text.
"""

from __future__ import annotations

_ONTOLOGY = "<http://dbpedia.org/ontology/{}>"
_REASONS = {
    "unspecific": (
        "associate", "category", "comparable", "isPartOf", "related", "relation", "subject", "type", "title",
    ),
    "dynamic": (
        "championInDouble", "currentMember", "currentRank", "currentRecord", "currentSeason", "currentStatus",
        "currentTeam", "currentTeamMember", "currentWorldChampion", "currentlyUsedFor", "generalManager",
        "incumbent", "lastLaunchRocket", "lastRace", "lastSeason",
    ),
    "specific to the source": (
        "page", "wikiPageDisambiguates", "wikiPageExternalLink", "wikiPageInterLanguageLink", "wikiPageRedirects",
        "wikiPageUsesTemplate", "wikiPageWikiLink",
    ),
    "no text": (
        "logo", "map", "mapCaption", "picture", "signature", "soundRecording", "thumbnail", "webcast",
    ),
}  # fmt: skip
_ELSEWHERE = {
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>": "unspecific",
    "<http://www.w3.org/2000/01/rdf-schema#seeAlso>": "unspecific",
    "<http://www.w3.org/2002/07/owl#differentFrom>": "unspecific",
    "<http://purl.org/dc/terms/subject>": "unspecific",
    "<http://www.w3.org/2002/07/owl#sameAs>": "specific to the source",
    "<http://xmlns.com/foaf/0.1/page>": "specific to the source",
    "<http://xmlns.com/foaf/0.1/depiction>": "no text",
    "<http://xmlns.com/foaf/0.1/homepage>": "no text",
    "<http://xmlns.com/foaf/0.1/logo>": "no text",
}
# Each with its reason.
UNFIT = {_ONTOLOGY.format(name): reason for reason, names in _REASONS.items() for name in names} | _ELSEWHERE
# Predicates whose values change or are of many kinds, but of which a question can be asked that stays right: the
# shipped file's, which takes the place of whatever a user's file asks.
CHANGING = {
    _ONTOLOGY.format(name)
    for name in (
        "bandMember", "ceo", "chairman", "chairperson", "class", "coach", "currentPartner", "dean", "deputy",
        "formerPartner", "head", "leader", "leaderName", "leaderParty", "manager", "mayor", "monarch", "owner",
        "owningCompany", "partner", "president", "primeMinister", "principal", "provost", "rector", "residence",
        "secretaryGeneral", "spokesperson", "tenant", "viceChancellor", "vicePresident",
    )
}  # fmt: skip
