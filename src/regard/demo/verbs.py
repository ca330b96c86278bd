"""The verbs, adjectives and small words of the demonstration, in the notation of `words`.

A verb names the kinds of noun that may be its subject and its object, an adjective the kinds that it may be said of, so
that people read books, dogs chase cats and soup is never brave.
"""

from dataclasses import dataclass

from regard.demo.words import Adjective, Pronoun, Relation, Time, Verb, adjective, verb

I = Pronoun(english="I", french="je", person=1, plural=False, feminine=False)  # noqa: E741
YOU = Pronoun(english="you", french="tu", person=2, plural=False, feminine=False)
HE = Pronoun(english="he", french="il", person=3, plural=False, feminine=False)
SHE = Pronoun(english="she", french="elle", person=3, plural=False, feminine=True)
WE = Pronoun(english="we", french="nous", person=1, plural=True, feminine=False)
THEY = Pronoun(english="they", french="ils", person=3, plural=True, feminine=False)
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)

IN = Relation(english="in", french="dans", turkish="")
ON = Relation(english="on", french="sur", turkish="üstünde")
UNDER = Relation(english="under", french="sous", turkish="altında")
BEHIND = Relation(english="behind", french="derrière", turkish="arkasında")
IN_FRONT_OF = Relation(english="in front of", french="devant", turkish="önünde")
NEAR = Relation(english="near", french="près de", turkish="yakınında")

TIMES = (
    Time(english="yesterday", french="hier", turkish="dün"),
    Time(english="today", french="aujourd'hui", turkish="bugün"),
    Time(english="this morning", french="ce matin", turkish="bu sabah"),
    Time(english="last week", french="la semaine dernière", turkish="geçen hafta"),
)

# Past actions with one object. What animals eat, drink, chase and catch is narrowed in `patterns`.
EAT = verb("eat/ate", "mangé", "ye", "accusative", "person animal", "edible")
DRINK = verb("drink/drank", "bu", "iç", "accusative", "person grazes pet", "drink")
CHASE = verb("chase/chased", "poursuivi", "kovala", "accusative", "animal", "animal", definite=True)
CATCH = verb("catch/caught", "attrapé", "yakala", "accusative", "person animal", "caught little single")
PUT_ON = verb("put on/put on", "mis", "giy", "accusative", "person", "worn")
BUY = verb("buy/bought", "acheté", "al", "accusative", "person", "bought")
CARRY = verb("carry/carried", "porté", "taşı", "accusative", "person", "heavy container")
REPAIR = verb("repair/repaired", "réparé", "onar", "accusative", "person", "fixed")
HEAR = verb("hear/heard", "entendu", "duy", "accusative", "person animal", "heard animal")
HELP = verb("help/helped", "aidé", "yardım et", "dative", "person", "folk")
ACTIONS = (
    EAT,
    DRINK,
    CHASE,
    CATCH,
    PUT_ON,
    BUY,
    CARRY,
    REPAIR,
    HELP,
    verb("see/saw", "vu", "gör", "accusative", "person animal", "folk animal stands vehicle"),
    verb("find/found", "trouvé", "bul", "accusative", "person", "portable pet"),
    verb("lose/lost", "perdu", "kaybet", "accusative", "person", "own"),
    verb("sell/sold", "vendu", "sat", "accusative", "person", "bought"),
    verb("read/read", "lu", "oku", "accusative", "person", "read"),
    verb("write/wrote", "écrit", "yaz", "accusative", "person", "made"),
    verb("open/opened", "ouvert", "aç", "accusative", "person", "opens shuts"),
    verb("close/closed", "fermé", "kapat", "accusative", "person", "shuts", definite=True),
    verb("wash/washed", "lavé", "yıka", "accusative", "person", "washed fruit"),
    verb("break/broke", "cassé", "kır", "accusative", "person", "broken"),
    verb("paint/painted", "peint", "boya", "accusative", "person", "painted"),
    verb("draw/drew", "dessiné", "çiz", "accusative", "person", "drawn animal"),
    HEAR,
    verb("follow/followed", "suivi", "takip et", "accusative", "person animal", "folk animal", definite=True),
    verb("bite/bit", "mordu", "ısır", "accusative", "bites", "folk animal", definite=True),
    verb("wait for/waited for", "attendu", "bekle", "accusative", "person", "folk", definite=True),
    verb("look at/looked at", "regardé", "bak", "dative", "person animal", "folk pet looked"),
    verb("listen to/listened to", "écouté", "dinle", "accusative", "person", "heard"),
    verb("hide/hid", "caché", "sakla", "accusative", "person", "portable"),
    verb("visit/visited", "visité", "ziyaret et", "accusative", "person", "visited"),
    verb("forget/forgot", "oublié", "unut", "accusative", "person", "own"),
    verb("steal/stole", "volé", "çal", "accusative", "person", "bought"),
    verb("cut/cut", "coupé", "kes", "accusative", "person", "cut fruit"),
    verb("build/built", "construit", "yap", "accusative", "person", "built"),
)

# Something is given to somebody.
GIFTS = (
    verb("give/gave", "donné", "ver", "accusative", "person", "portable edible drink"),
    verb("show/showed", "montré", "göster", "accusative", "person", "portable"),
    verb("send/sent", "envoyé", "gönder", "accusative", "person", "laid"),
    verb("bring/brought", "apporté", "getir", "accusative", "person", "portable edible drink"),
)

ENTER = verb("enter/entered", "être entré dans", "gir", "dative", "person animal", "inside entered")
LEAVE = verb("leave/left", "quitté", "ayrıl", "ablative", "person animal", "inside public left")
MOTIONS = (
    ENTER,
    LEAVE,
    verb("go to/went to", "être allé à", "git", "dative", "person", "public visited goal"),
    verb("return to/returned to", "être retourné à", "dön", "dative", "person animal", "public visited goal"),
    verb("come back from/came back from", "être revenu de", "dön", "ablative", "person animal", "public visited"),
    verb("come out of/came out of", "être sorti de", "çık", "ablative", "person animal", "inside"),
    verb("run to/ran to", "couru jusqu'à", "koş", "dative", "person animal", "place"),
    verb("walk to/walked to", "marché jusqu'à", "yürü", "dative", "person animal", "place"),
)
CROSS = verb("cross/crossed", "traversé", "geç", "accusative", "living", "crossed")
EXPLORE = verb("explore/explored", "exploré", "keşfet", "accusative", "living", "explored")
CLIMB = verb("climb/climbed", "escaladé", "tırman", "dative", "living", "climbed")
AVOID = verb("avoid/avoided", "évité", "uzak dur", "ablative", "living", "avoided")

BIG = adjective("big", "grand", "büyük/büyüğ", "animal thing building", before=True)
OLD = adjective("old", "vieux, vieille, vieil", "eski, yaşlı", "animal thing building text", before=True)
YOUNG = adjective("young", "jeune", "genç/genc", "gendered old animal", before=True)
HEAVY = adjective("heavy", "lourd", "ağır", "")
EXPENSIVE = adjective("expensive", "cher, chère", "pahalı", "bought", attributive=False)
DIRTY = adjective("dirty", "sale", "kirli", "washed")
TIRED = adjective("tired", "fatigué", "yorgun", "person animal")
HUNGRY = adjective("hungry", "affamé", "aç", "person animal", attributive=False)
SICK = adjective("sick", "malade", "hasta", "person animal")
LAZY = adjective("lazy", "paresseux, paresseuse", "tembel", "person", attributive=False)
SLOW = adjective("slow", "lent", "yavaş", "animal vehicle")
WEAK = adjective("weak", "faible", "zayıf", "person animal", attributive=False)
POOR = adjective("poor", "pauvre", "fakir", "person", attributive=False)
SCARED = adjective("scared", "effrayé", "korkmuş", "")
THIRSTY = adjective("thirsty", "assoiffé", "susamış", "")
# What a place may be; a noun says itself which of them it can be.
PLACE_ADJECTIVES = (
    adjective("wide", "large", "geniş", ""),
    adjective("narrow", "étroit", "dar", ""),
    adjective("long", "long, longue", "uzun", "", before=True),
    adjective("deep", "profond", "derin", ""),
    adjective("dark", "sombre", "karanlık", ""),
    adjective("muddy", "boueux, boueuse", "çamurlu", ""),
    adjective("slippery", "glissant", "kaygan", ""),
    adjective("steep", "raide", "dik", ""),
    adjective("dusty", "poussiéreux, poussiéreuse", "tozlu", ""),
    adjective("crowded", "bondé", "kalabalık", ""),
    adjective("high", "haut", "yüksek", ""),
)
ADJECTIVES: tuple[Adjective, ...] = (
    BIG,
    adjective("small", "petit", "küçük/küçüğ", "animal thing building", before=True),
    OLD,
    adjective("new", "nouveau, nouvelle, nouvel", "yeni", "thing building", before=True),
    adjective("beautiful", "beau, belle, bel", "güzel", "land", before=True),
    adjective("good", "bon, bonne", "iyi", "text food dish drink", before=True),
    YOUNG,
    adjective("red", "rouge", "kırmızı", "", graded=False),
    adjective("blue", "bleu", "mavi", "", graded=False),
    adjective("green", "vert", "yeşil", "", graded=False),
    adjective("white", "blanc, blanche", "beyaz", "", graded=False),
    adjective("black", "noir", "siyah", "", graded=False),
    adjective("yellow", "jaune", "sarı", "", graded=False),
    HEAVY,
    EXPENSIVE,
    adjective("clean", "propre", "temiz", "washed", attributive=False),
    DIRTY,
    adjective("empty", "vide", "boş", "container room", graded=False),
    adjective("broken", "cassé", "kırık", "", graded=False, attributive=False),
    adjective("open", "ouvert", "açık", "shuts public", graded=False, attributive=False),
    adjective("closed", "fermé", "kapalı", "shuts public", graded=False, attributive=False),
    adjective("interesting", "intéressant", "ilginç", ""),
    adjective("strange", "bizarre", "garip", "text"),
    adjective("happy", "heureux, heureuse", "mutlu", "person pet"),
    adjective("sad", "triste", "üzgün", "person"),
    adjective("strong", "fort", "güçlü", "person bites", attributive=False),
    adjective("rich", "riche", "zengin", "person"),
    adjective("hot", "chaud", "sıcak", ""),
    adjective("cold", "froid", "soğuk", ""),
    adjective("fresh", "frais, fraîche", "taze", "fruit"),
    adjective("sweet", "sucré", "tatlı", ""),
    adjective("delicious", "délicieux, délicieuse", "lezzetli", "edible drink"),
    adjective("dangerous", "dangereux, dangereuse", "tehlikeli", ""),
    adjective("quiet", "calme", "sakin", ""),
    TIRED,
    HUNGRY,
    SICK,
    LAZY,
    SLOW,
    WEAK,
    POOR,
    *PLACE_ADJECTIVES,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """A verb whose action or omission has a reason: what the subject, or what the object, may have been too much of."""

    verb: Verb
    objects: str  # the kind of object
    negated: bool
    subject: tuple[Adjective, ...]
    object: tuple[Adjective, ...]


ANIMAL_REASONS = (
    Reason(
        verb=CROSS,
        objects="crossed",
        negated=True,
        subject=(TIRED, HUNGRY, SICK, WEAK, SCARED, LAZY, SLOW, OLD, YOUNG, THIRSTY),
        object=PLACE_ADJECTIVES,
    ),
    Reason(
        verb=ENTER,
        objects="entered",
        negated=True,
        subject=(TIRED, SICK, WEAK, SCARED, LAZY, SLOW, OLD),
        object=PLACE_ADJECTIVES,
    ),
    Reason(
        verb=EXPLORE,
        objects="explored",
        negated=True,
        subject=(TIRED, HUNGRY, SICK, WEAK, SCARED, LAZY, YOUNG, THIRSTY, OLD),
        object=PLACE_ADJECTIVES,
    ),
    Reason(
        verb=CLIMB,
        objects="climbed",
        negated=True,
        subject=(TIRED, HUNGRY, SICK, WEAK, SCARED, LAZY, SLOW, OLD, YOUNG, THIRSTY),
        object=PLACE_ADJECTIVES,
    ),
    Reason(
        verb=AVOID,
        objects="avoided",
        negated=False,
        subject=(TIRED, SICK, WEAK, SCARED, LAZY, SLOW, OLD, YOUNG),
        object=PLACE_ADJECTIVES,
    ),
    Reason(
        verb=LEAVE,
        objects="left",
        negated=False,
        subject=(TIRED, HUNGRY, SICK, SCARED, THIRSTY),
        object=tuple(adjective for adjective in PLACE_ADJECTIVES if adjective.english not in ("wide", "long")),
    ),
)
SHOPPING_REASONS = (
    Reason(verb=BUY, objects="bought", negated=True, subject=(TIRED, SICK, POOR), object=(EXPENSIVE, HEAVY)),
    Reason(verb=CARRY, objects="heavy", negated=True, subject=(TIRED, SICK, WEAK, LAZY), object=(HEAVY, DIRTY)),
    Reason(verb=REPAIR, objects="fixed", negated=True, subject=(TIRED, SICK, LAZY), object=(DIRTY, HEAVY)),
)
