"""Predicates of DBpedia that are not asked about, for the paper's reasons.

The paper leaves out attributes that are unspecific, dynamic, specific to the source, or no text.
"""

from __future__ import annotations

_ONTOLOGY = "<http://dbpedia.org/ontology/{}>"
_REASONS = {
    "unspecific": (
        "associate", "category", "class", "comparable", "isPartOf", "page", "related", "relation", "subject",
        "type", "title",
    ),
    "dynamic": (
        "bandMember", "ceo", "chairman", "chairperson", "championInDouble", "coach", "currentMember",
        "currentPartner", "currentRank", "currentRecord", "currentSeason", "currentStatus", "currentTeam",
        "currentTeamMember", "currentWorldChampion", "currentlyUsedFor", "dean", "deputy", "formerPartner",
        "generalManager", "head", "incumbent", "lastLaunchRocket", "lastRace", "lastSeason", "leader",
        "leaderName", "leaderParty", "manager", "mayor", "monarch", "owner", "owningCompany", "partner",
        "president", "primeMinister", "principal", "provost", "rector", "residence", "secretaryGeneral",
        "spokesperson", "tenant", "viceChancellor", "vicePresident",
    ),
    "specific to the source": (
        "wikiPageDisambiguates", "wikiPageExternalLink", "wikiPageInterLanguageLink", "wikiPageRedirects",
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
