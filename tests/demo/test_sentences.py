"""The three small grammars against sentences written by hand, one rule or exception of a language a row."""

import pytest

from regard.demo import english, french, turkish, verbs
from regard.demo.meaning import Action, Because, Being, Existing, Having, Meaning, Phrase, Where
from regard.demo.nouns import NAMED
from regard.demo.turkish import attach, decline
from regard.demo.verbs import ACTIONS, ADJECTIVES, GIFTS, HE, MOTIONS, PLACE_ADJECTIVES, SHE, THEY, TIMES, WE, YOU, I

VERBS = {verb.english: verb for verb in (*ACTIONS, *GIFTS, *MOTIONS, verbs.CROSS, verbs.CLIMB, verbs.AVOID)}
SO = {adjective.english: adjective for adjective in (*ADJECTIVES, *PLACE_ADJECTIVES, verbs.SCARED, verbs.THIRSTY)}
TIME = {time.english: time for time in TIMES}


def some(text: str, **more: object) -> Phrase:
    """``the old man`` or ``a apple``: determiner, adjective and the singular of a noun; a plural by ``plural=True``."""
    determiner, *adjective, noun = text.split()
    described = SO[adjective[0]] if adjective else None
    return Phrase(noun=NAMED[noun], determiner=determiner, adjective=described, **more)  # type: ignore[arg-type]


def many(text: str) -> Phrase:
    return some(text, plural=True)


def did(subject: object, verb: str, *things: Phrase, **more: object) -> Action:
    return Action(subject=subject, verb=VERBS[verb], objects=things, **more)  # type: ignore[arg-type]


def so(subject: object, quality: str, **more: object) -> Being:
    return Being(subject=subject, quality=SO.get(quality) or NAMED[quality], **more)  # type: ignore[arg-type]


def at(relation: verbs.Relation, landmark: str) -> Where:
    return Where(relation=relation, landmark=some(landmark))


def because(action: Action, adjective: str, *, of_object: bool, degree: str = "too") -> Because:
    return Because(action=action, of_object=of_object, adjective=SO[adjective], degree=degree)  # type: ignore[arg-type]


CROSSING = did(some("the animal"), "cross", some("the street"), negated=True)

# fmt: off
PREDICATES: list[tuple[Meaning, str, str, str]] = [
    (so(I, "student"), "I am a student.", "Je suis étudiant.", "Öğrenciyim."),
    (so(YOU, "teacher"), "You are a teacher.", "Tu es enseignant.", "Öğretmensin."),
    (so(SHE, "student"), "She is a student.", "Elle est étudiante.", "O bir öğrenci."),
    (so(SHE, "singer", past=True), "She was a singer.", "Elle était chanteuse.", "O bir şarkıcıydı."),
    (so(HE, "engineer"), "He is an engineer.", "Il est ingénieur.", "O bir mühendis."),
    (so(WE, "doctor"), "We are doctors.", "Nous sommes médecins.", "Doktoruz."),
    (so(THEY, "baker"), "They are bakers.", "Ils sont boulangers.", "Onlar fırıncı."),
    (so(I, "cook", negated=True), "I am not a cook.", "Je ne suis pas cuisinier.", "Aşçı değilim."),
    (so(some("my mother"), "lawyer", negated=True, past=True),
     "My mother wasn't a lawyer.", "Ma mère n'était pas avocate.", "Annem avukat değildi."),
    (so(many("the woman"), "farmer"), "The women are farmers.", "Les femmes sont fermières.", "Kadınlar çiftçi."),
    (so(I, "tired"), "I am tired.", "Je suis fatigué.", "Yorgunum."),
    (so(I, "young"), "I am young.", "Je suis jeune.", "Gencim."),
    (so(WE, "hungry"), "We are hungry.", "Nous sommes affamés.", "Açız."),
    (so(YOU, "sick", degree="very"), "You are very sick.", "Tu es très malade.", "Çok hastasın."),
    (so(SHE, "happy", past=True), "She was happy.", "Elle était heureuse.", "O mutluydu."),
    (so(THEY, "sad"), "They are sad.", "Ils sont tristes.", "Onlar üzgün."),
    (so(many("the house"), "old"), "The houses are old.", "Les maisons sont vieilles.", "Evler eski."),
    (so(some("the king"), "old"), "The king is old.", "Le roi est vieux.", "Kral yaşlı."),
    (so(some("the cheese"), "good"), "The cheese is good.", "Le fromage est bon.", "Peynir iyi."),
    (so(some("the cupboard"), "white", past=True),
     "The cupboard was white.", "L'armoire était blanche.", "Dolap beyazdı."),
    (so(many("the castle"), "beautiful"), "The castles are beautiful.", "Les châteaux sont beaux.", "Şatolar güzel."),
    (so(some("the salad"), "fresh"), "The salad is fresh.", "La salade est fraîche.", "Salata taze."),
    (so(some("my book"), "heavy", negated=True),
     "My book isn't heavy.", "Mon livre n'est pas lourd.", "Kitabım ağır değil."),
    (so(some("our bicycle"), "blue"), "Our bicycle is blue.", "Notre vélo est bleu.", "Bisikletimiz mavi."),
    (Being(subject=some("the cat"), quality=at(verbs.UNDER, "the table")),
     "The cat is under the table.", "Le chat est sous la table.", "Kedi masanın altında."),
    (Being(subject=SHE, quality=at(verbs.IN, "the school"), past=True),
     "She was in the school.", "Elle était dans l'école.", "O okuldaydı."),
    (Being(subject=some("the key"), quality=at(verbs.NEAR, "the tree"), negated=True),
     "The key isn't near the tree.", "La clé n'est pas près de l'arbre.", "Anahtar ağacın yakınında değil."),
    (Being(subject=many("the wolf"), quality=at(verbs.NEAR, "the bridge"), past=True),
     "The wolves were near the bridge.", "Les loups étaient près du pont.", "Kurtlar köprünün yakınındaydı."),
    (Existing(thing=some("a cat"), where=at(verbs.IN, "the garden")),
     "There is a cat in the garden.", "Il y a un chat dans le jardin.", "Bahçede bir kedi var."),
    (Existing(thing=many("a bird"), where=at(verbs.IN, "the park"), past=True),
     "There were birds in the park.", "Il y avait des oiseaux dans le parc.", "Parkta kuşlar vardı."),
    (Existing(thing=some("a axe"), where=at(verbs.ON, "the bed"), negated=True),
     "There isn't an axe on the bed.", "Il n'y a pas de hache sur le lit.", "Yatağın üstünde balta yok."),
    (Existing(thing=many("a plate"), where=at(verbs.IN, "the kitchen"), negated=True, past=True),
     "There weren't any plates in the kitchen.", "Il n'y avait pas d'assiettes dans la cuisine.",
     "Mutfakta tabak yoktu."),
    (Having(owner=I, thing=some("a red book")),
     "I have a red book.", "J'ai un livre rouge.", "Kırmızı bir kitabım var."),
    (Having(owner=some("my father"), thing=some("a new car"), past=True),
     "My father had a new car.", "Mon père avait une nouvelle voiture.", "Babamın yeni bir arabası vardı."),
    (Having(owner=HE, thing=some("a dog"), negated=True),
     "He doesn't have a dog.", "Il n'a pas de chien.", "Onun köpeği yok."),
    (Having(owner=THEY, thing=some("a old horse")),
     "They have an old horse.", "Ils ont un vieux cheval.", "Onların yaşlı bir atı var."),
    (Having(owner=YOU, thing=some("a watch"), negated=True),
     "You don't have a watch.", "Tu n'as pas de montre.", "Saatin yok."),
]
# fmt: on

# fmt: off
ACTIONS_DONE: list[tuple[Meaning, str, str, str]] = [
    (did(some("the cat"), "eat", some("the mouse")),
     "The cat ate the mouse.", "Le chat a mangé la souris.", "Kedi fareyi yedi."),
    (did(I, "read", some("the book")), "I read the book.", "J'ai lu le livre.", "Kitabı okudum."),
    (did(YOU, "drink", some("the water"), negated=True),
     "You didn't drink the water.", "Tu n'as pas bu l'eau.", "Suyu içmedin."),
    (did(SHE, "eat", some("a apple")), "She ate an apple.", "Elle a mangé une pomme.", "Bir elma yedi."),
    (did(some("the woman"), "drink", some("a water"), negated=True),
     "The woman didn't drink any water.", "La femme n'a pas bu d'eau.", "Kadın su içmedi."),
    (did(some("the man"), "eat", some("a meat")),
     "The man ate meat.", "L'homme a mangé de la viande.", "Adam et yedi."),
    (did(THEY, "drink", some("a water")), "They drank water.", "Ils ont bu de l'eau.", "Su içtiler."),
    (did(many("the child"), "eat", some("a bread")),
     "The children ate bread.", "Les enfants ont mangé du pain.", "Çocuklar ekmek yedi."),
    (did(WE, "eat", many("a orange"), negated=True),
     "We didn't eat any oranges.", "Nous n'avons pas mangé d'oranges.", "Portakal yemedik."),
    (did(some("the donkey"), "see", some("the hedgehog")),
     "The donkey saw the hedgehog.", "L'âne a vu le hérisson.", "Eşek kirpiyi gördü."),
    (did(some("the farmer"), "buy", some("the axe")),
     "The farmer bought the axe.", "Le fermier a acheté la hache.", "Çiftçi baltayı aldı."),
    (did(some("a girl"), "draw", some("a beautiful bird")),
     "A girl drew a beautiful bird.", "Une fille a dessiné un bel oiseau.", "Bir kız güzel bir kuş çizdi."),
    (did(some("the old man"), "repair", some("the old computer")),
     "The old man repaired the old computer.", "Le vieil homme a réparé le vieil ordinateur.",
     "Yaşlı adam eski bilgisayarı onardı."),
    (did(some("my brother"), "buy", some("a new computer"), time=TIME["last week"]),
     "My brother bought a new computer last week.", "Mon frère a acheté un nouvel ordinateur la semaine dernière.",
     "Geçen hafta erkek kardeşim yeni bir bilgisayar aldı."),
    (did(some("the girl"), "wash", many("a old plate")),
     "The girl washed old plates.", "La fille a lavé de vieilles assiettes.", "Kız eski tabaklar yıkadı."),
    (did(HE, "read", many("the newspaper"), time=TIME["today"]),
     "He read the newspapers today.", "Il a lu les journaux aujourd'hui.", "Bugün gazeteleri okudu."),
    (did(some("the dog"), "follow", some("the cow"), time=TIME["yesterday"]),
     "The dog followed the cow yesterday.", "Le chien a suivi la vache hier.", "Dün köpek ineği takip etti."),
    (did(some("the wolf"), "bite", some("the wolf")),
     "The wolf bit the wolf.", "Le loup a mordu le loup.", "Kurt kurdu ısırdı."),
    (did(I, "help", some("the woman")), "I helped the woman.", "J'ai aidé la femme.", "Kadına yardım ettim."),
    (did(some("the child"), "look at", some("the tree")),
     "The child looked at the tree.", "L'enfant a regardé l'arbre.", "Çocuk ağaca baktı."),
    (did(some("the girl"), "lose", some("own red book")),
     "The girl lost her red book.", "La fille a perdu son livre rouge.", "Kız kırmızı kitabını kaybetti."),
    (did(some("the king"), "open", some("own letter")),
     "The king opened his letter.", "Le roi a ouvert sa lettre.", "Kral mektubunu açtı."),
    (did(I, "put on", some("my coat")), "I put on my coat.", "J'ai mis mon manteau.", "Paltomu giydim."),
    (did(some("the man"), "find", some("my scarf")),
     "The man found my scarf.", "L'homme a trouvé mon écharpe.", "Adam benim atkımı buldu."),
    (did(WE, "sell", some("our car")), "We sold our car.", "Nous avons vendu notre voiture.", "Arabamızı sattık."),
    (did(THEY, "forget", some("your umbrella")),
     "They forgot your umbrella.", "Ils ont oublié ton parapluie.", "Senin şemsiyeni unuttular."),
    (did(I, "find", some("my watch")), "I found my watch.", "J'ai trouvé ma montre.", "Saatimi buldum."),
    (did(some("the queen"), "buy", some("a pear"), some("a orange")),
     "The queen bought a pear and an orange.", "La reine a acheté une poire et une orange.",
     "Kraliçe bir armut ve bir portakal aldı."),
    (did(SHE, "wash", some("the pear"), some("the carrot")),
     "She washed the pear and the carrot.", "Elle a lavé la poire et la carotte.", "Armudu ve havucu yıkadı."),
    (did(some("the boy"), "read", some("a book"), where=at(verbs.IN, "the garden")),
     "The boy read a book in the garden.", "Le garçon a lu un livre dans le jardin.",
     "Oğlan bahçede bir kitap okudu."),
    (did(some("the boy"), "read", some("the poem"), where=at(verbs.IN, "the library")),
     "The boy read the poem in the library.", "Le garçon a lu le poème dans la bibliothèque.",
     "Oğlan şiiri kütüphanede okudu."),
    (did(some("the girl"), "give", some("the book"), recipient=some("the boy")),
     "The girl gave the book to the boy.", "La fille a donné le livre au garçon.", "Kız kitabı oğlana verdi."),
    (did(some("the girl"), "give", some("a flower"), recipient=some("my mother")),
     "The girl gave a flower to my mother.", "La fille a donné une fleur à ma mère.", "Kız anneme bir çiçek verdi."),
    (did(HE, "show", some("the ring"), recipient=many("the princess"), negated=True),
     "He didn't show the ring to the princesses.", "Il n'a pas montré la bague aux princesses.",
     "Yüzüğü prenseslere göstermedi."),
]
# fmt: on

# fmt: off
MOVES: list[tuple[Meaning, str, str, str]] = [
    (did(some("the boy"), "go to", some("the school")),
     "The boy went to the school.", "Le garçon est allé à l'école.", "Oğlan okula gitti."),
    (did(SHE, "go to", some("the market")), "She went to the market.", "Elle est allée au marché.", "Pazara gitti."),
    (did(many("the girl"), "come back from", some("the park"), negated=True),
     "The girls didn't come back from the park.", "Les filles ne sont pas revenues du parc.",
     "Kızlar parktan dönmedi."),
    (did(I, "go to", some("the house"), negated=True),
     "I didn't go to the house.", "Je ne suis pas allé à la maison.", "Eve gitmedim."),
    (did(WE, "enter", some("the city")),
     "We entered the city.", "Nous sommes entrés dans la ville.", "Şehre girdik."),
    (did(some("the goat"), "run to", some("the village")),
     "The goat ran to the village.", "La chèvre a couru jusqu'au village.", "Keçi köye koştu."),
    (did(some("the cow"), "walk to", some("the forest")),
     "The cow walked to the forest.", "La vache a marché jusqu'à la forêt.", "İnek ormana yürüdü."),
    (did(THEY, "leave", some("the kitchen")),
     "They left the kitchen.", "Ils ont quitté la cuisine.", "Mutfaktan ayrıldılar."),
    (because(CROSSING, "tired", of_object=False),
     "The animal didn't cross the street because it was too tired.",
     "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
     "Hayvan caddeyi geçmedi çünkü hayvan çok yorgundu."),
    (because(CROSSING, "wide", of_object=True),
     "The animal didn't cross the street because it was too wide.",
     "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
     "Hayvan caddeyi geçmedi çünkü cadde çok genişti."),
    (because(did(some("the turtle"), "cross", some("the bridge"), negated=True), "old", of_object=False),
     "The turtle didn't cross the bridge because it was too old.",
     "La tortue n'a pas traversé le pont parce qu'elle était trop vieille.",
     "Kaplumbağa köprüyü geçmedi çünkü kaplumbağa çok yaşlıydı."),
    (because(did(some("the hen"), "enter", some("the tunnel"), negated=True), "long", of_object=True, degree="very"),
     "The hen didn't enter the tunnel because it was very long.",
     "La poule n'est pas entrée dans le tunnel parce qu'il était très long.",
     "Tavuk tünele girmedi çünkü tünel çok uzundu."),
    (because(did(some("the bear"), "avoid", some("the river")), "deep", of_object=True),
     "The bear avoided the river because it was too deep.",
     "L'ours a évité la rivière parce qu'elle était trop profonde.",
     "Ayı nehirden uzak durdu çünkü nehir çok derindi."),
    (because(did(some("the ant"), "climb", some("the hill"), negated=True), "scared", of_object=False),
     "The ant didn't climb the hill because it was too scared.",
     "La fourmi n'a pas escaladé la colline parce qu'elle était trop effrayée.",
     "Karınca tepeye tırmanmadı çünkü karınca çok korkmuştu."),
    (because(did(some("the queen"), "cross", some("the swamp"), negated=True), "sick", of_object=False),
     "The queen didn't cross the swamp because she was too sick.",
     "La reine n'a pas traversé le marais parce qu'elle était trop malade.",
     "Kraliçe bataklığı geçmedi çünkü kraliçe çok hastaydı."),
    (because(did(some("the man"), "buy", some("the car"), negated=True), "expensive", of_object=True),
     "The man didn't buy the car because it was too expensive.",
     "L'homme n'a pas acheté la voiture parce qu'elle était trop chère.",
     "Adam arabayı almadı çünkü araba çok pahalıydı."),
]
# fmt: on


@pytest.mark.parametrize(("meaning", "in_english", "in_french", "in_turkish"), [*PREDICATES, *ACTIONS_DONE, *MOVES])
def test_sentence_in_three_languages(meaning: Meaning, in_english: str, in_french: str, in_turkish: str) -> None:
    assert english.sentence(meaning) == in_english
    assert french.sentence(meaning) == in_french
    assert turkish.sentence(meaning) == in_turkish


def test_hand_checked_sentences_are_many() -> None:
    assert len([*PREDICATES, *ACTIONS_DONE, *MOVES]) >= 80


@pytest.mark.parametrize(
    ("word", "suffix", "soft", "front", "expected"),
    [
        ("kedi", "(y)I", "", False, "kediyi"),
        ("at", "(y)I", "", False, "atı"),
        ("top", "(y)I", "", False, "topu"),
        ("göl", "(y)I", "", False, "gölü"),
        ("kitap", "(y)I", "kitab", False, "kitabı"),
        ("kitap", "DA", "kitab", False, "kitapta"),
        ("ağaç", "(n)In", "ağac", False, "ağacın"),
        ("oda", "(n)In", "", False, "odanın"),
        ("saat", "(y)I", "", True, "saati"),
        ("saat", "lAr", "", True, "saatler"),
        ("su", "(y)A", "", False, "suya"),
        ("hasta", "(y)DI", "", False, "hastaydı"),
        ("aç", "(y)DI", "", False, "açtı"),
        ("anne", "(I)mIz", "", False, "annemiz"),
        ("yüzük", "(I)mIz", "yüzüğ", False, "yüzüğümüz"),
        ("hikâye", "(y)I", "", False, "hikâyeyi"),
    ],
)
def test_turkish_suffixes(word: str, suffix: str, soft: str, front: bool, expected: str) -> None:
    assert attach(word, suffix, soft=soft, front=front) == expected


def test_turkish_case_after_possessive() -> None:
    book = NAMED["book"]
    assert decline(book, owner=2, case="accusative") == "kitabını"
    assert decline(book, owner=2, case="locative") == "kitabında"
    assert decline(book, owner=0, case="dative") == "kitabıma"
    assert decline(book, plural=True, case="ablative") == "kitaplardan"
    assert decline(NAMED["river"], case="dative") == "nehre"
    assert decline(NAMED["city"], case="locative") == "şehirde"
