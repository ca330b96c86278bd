"""The nouns of the demonstration, by group, in the notation of `words`.

The fourth cell holds the kinds by which verbs and adjectives choose their company. A kind that is the English name of
an adjective says that the adjective fits this noun (a forest may be dark, a tunnel narrow).
"""

from regard.demo.words import Noun, nouns

# People whose gender every language shows, so that he, she, his and her have one translation.
PEOPLE = nouns(
    "person folk living many gendered",
    (
        ("man/men", "un homme", "adam", "old"),
        ("woman/women", "une femme", "kadın", "beautiful old"),
        ("boy", "un garçon", "oğlan", "small"),
        ("girl", "une fille", "kız", "small beautiful"),
        ("king", "un roi", "kral", "old"),
        ("queen", "une reine", "kraliçe", "beautiful old"),
        ("prince", "un prince", "prens"),
        ("princess", "une princesse", "prenses", "beautiful"),
    ),
)
FAMILY = nouns(
    "person living gendered old",
    (
        ("father", "un père", "baba"),
        ("mother", "une mère", "anne"),
        ("brother", "un frère", "erkek kardeş", "kin"),
        ("sister", "une sœur", "kız kardeş", "kin"),
        ("grandfather", "un grand-père", "dede"),
        ("grandmother", "une grand-mère", "büyükanne"),
        ("uncle", "un oncle", "amca", "kin"),
        ("aunt", "une tante", "teyze", "kin"),
    ),
)
CHILD = nouns("person folk living many", (("child/children", "un enfant", "çocuk/çocuğ", "small"),))
PROFESSIONS = nouns(
    "person living old",
    (
        ("student", "un étudiant, une étudiante", "öğrenci"),
        ("teacher", "un enseignant, une enseignante", "öğretmen"),
        ("doctor", "un médecin", "doktor"),
        ("lawyer", "un avocat, une avocate", "avukat"),
        ("baker", "un boulanger, une boulangère", "fırıncı"),
        ("farmer", "un fermier, une fermière", "çiftçi"),
        ("singer", "un chanteur, une chanteuse", "şarkıcı", "heard"),
        ("writer", "un écrivain, une écrivaine", "yazar"),
        ("painter", "un peintre", "ressam"),
        ("journalist", "un journaliste", "gazeteci"),
        ("cook", "un cuisinier, une cuisinière", "aşçı"),
        ("musician", "un musicien, une musicienne", "müzisyen", "heard"),
        ("engineer", "un ingénieur, une ingénieure", "mühendis"),
        ("pilot", "un pilote", "pilot"),
    ),
)
ANIMALS = nouns(
    "animal living many",
    (
        ("animal", "un animal", "hayvan", "dangerous strange"),
        ("cat", "un chat", "kedi", "little pet white black beautiful"),
        ("dog", "un chien", "köpek/köpeğ", "little pet bites black white dangerous"),
        ("mouse/mice", "une souris", "fare", "little white"),
        ("bird", "un oiseau", "kuş", "little blue yellow beautiful looked"),
        ("horse", "un cheval", "at", "pet bites grazes black white beautiful"),
        ("cow", "une vache", "inek/ineğ", "grazes black white"),
        ("rabbit", "un lapin", "tavşan", "little pet grazes white"),
        ("fox", "un renard", "tilki", "bites red"),
        ("wolf/wolves", "un loup", "kurt/kurd", "bites dangerous"),
        ("bear", "un ours", "ayı", "bites dangerous"),
        ("goat", "une chèvre", "keçi", "grazes white black"),
        ("duck", "un canard", "ördek/ördeğ", "little white"),
        ("hen", "une poule", "tavuk/tavuğ", "little white red"),
        ("donkey", "un âne", "eşek/eşeğ", "grazes bites"),
        ("frog", "une grenouille", "kurbağa", "little green"),
        ("turtle", "une tortue", "kaplumbağa", "little green"),
        ("squirrel", "un écureuil", "sincap/sincab", "little red"),
        ("lion", "un lion", "aslan", "bites dangerous beautiful"),
        ("elephant", "un éléphant", "fil", "grazes"),
        ("giraffe", "une girafe", "zürafa", "grazes strange"),
        ("hedgehog", "un *hérisson", "kirpi", "little"),
        ("ant", "une fourmi", "karınca", "little black red"),
    ),
)
FOOD = nouns(
    "food edible bought many",
    (
        ("apple", "une pomme", "elma", "fruit plant sweet red green"),
        ("pear", "une poire", "armut/armud", "fruit plant sweet green"),
        ("orange", "une orange", "portakal", "fruit plant sweet"),
        ("banana", "une banane", "muz", "fruit plant sweet yellow"),
        ("cherry", "une cerise", "kiraz", "fruit plant sweet red"),
        ("strawberry", "une fraise", "çilek/çileğ", "fruit plant sweet red"),
        ("tomato/tomatoes", "une tomate", "domates", "fruit plant red"),
        ("carrot", "une carotte", "havuç/havuc", "fruit plant"),
        ("onion", "un oignon", "soğan", "fruit white red"),
        ("egg", "un œuf", "yumurta", "fresh white"),
        ("cake", "un gâteau", "kek", "sweet cut big small"),
    ),
)
DISHES = nouns(
    "mass edible",
    (
        ("bread", "un pain", "ekmek/ekmeğ", "dish fresh cut bought"),
        ("cheese", "un fromage", "peynir", "dish bought"),
        ("meat", "une viande", "et", "dish fresh hot cold cut bought"),
        ("soup", "une soupe", "çorba", "dish hot cold"),
        ("salad", "une salade", "salata", "dish fresh bought"),
        ("rice", "un riz", "pilav", "dish hot cold"),
        ("honey", "un miel", "bal", "dish sweet bought"),
        ("chocolate", "un chocolat", "çikolata", "dish sweet bought"),
        ("jam", "une confiture", "reçel", "dish sweet bought"),
    ),
)
DRINKS = nouns(
    "mass drink bought",
    (
        ("water", "une eau", "su", "hot cold"),
        ("milk", "un lait", "süt", "hot cold fresh"),
        ("tea", "un thé", "çay", "hot cold sweet"),
        ("coffee", "un café", "kahve", "hot cold sweet"),
        ("lemonade", "une limonade", "limonata", "cold fresh sweet"),
    ),
)
TEXTS = nouns(
    "text made interesting many",
    (
        ("story", "une histoire", "hikâye", "long heard read"),
        ("poem", "un poème", "şiir", "long heard read beautiful"),
        ("song", "une chanson", "şarkı", "long heard beautiful"),
    ),
)
# Things that people own: "own" ones are lost, found, cleaned ... and may be mine or yours.
THINGS = nouns(
    "thing portable many",
    (
        ("book", "un livre", "kitap/kitab", "own read made bought red blue green interesting heavy laid"),
        ("letter", "une lettre", "mektup/mektub", "own read made opens long interesting laid"),
        ("newspaper", "un journal", "gazete", "read bought interesting laid"),
        ("pen", "un stylo", "kalem", "own bought red blue green black broken laid"),
        ("key", "une clé", "anahtar", "own small big laid"),
        ("phone", "un téléphone", "telefon", "own broken fixed bought white black laid"),
        ("bag", "un sac", "çanta", "own container red blue green yellow black heavy bought laid holds shuts"),
        ("box", "une boîte", "kutu", "container painted white red blue heavy laid strange holds shuts"),
        ("basket", "un panier", "sepet", "container laid holds"),
        ("lamp", "une lampe", "lamba", "broken fixed bought white yellow laid"),
        ("watch", "une montre", "saat~", "own broken fixed bought white"),
        ("umbrella", "un parapluie", "şemsiye", "own bought black red blue yellow broken shuts"),
        ("knife/knives", "un couteau", "bıçak/bıçağ", "washed laid"),
        ("glass", "un verre", "bardak/bardağ", "washed container broken laid"),
        ("plate", "une assiette", "tabak/tabağ", "washed broken white blue laid"),
        ("bottle", "une bouteille", "şişe", "container broken green laid shuts"),
        ("painting", "un tableau", "tablo", "bought beautiful strange interesting looked"),
        ("photo", "une photo", "fotoğraf", "own beautiful strange interesting laid looked"),
        ("ball", "un ballon", "top", "red blue green yellow bought caught laid"),
        ("hat", "un chapeau", "şapka", "own worn bought red blue green black white laid"),
        ("coat", "un manteau", "palto", "own worn bought red blue black heavy"),
        ("shirt", "une chemise", "gömlek/gömleğ", "own worn washed bought red blue green white"),
        ("dress", "une robe", "elbise", "worn washed bought red blue green white yellow beautiful long"),
        ("scarf/scarves", "une écharpe", "atkı", "own washed bought red blue green long"),
        ("ring", "une bague", "yüzük/yüzüğ", "own bought beautiful laid"),
        ("flower", "une fleur", "çiçek/çiçeğ", "drawn bought red blue white yellow beautiful looked"),
        ("bicycle", "un vélo", "bisiklet", "own vehicle bought fixed washed painted red blue green yellow broken"),
        ("guitar", "une guitare", "gitar", "own fixed bought broken beautiful"),
        ("computer", "un ordinateur", "bilgisayar", "fixed bought broken heavy"),
        ("axe", "une *hache", "balta", "bought heavy"),
        ("ladder", "une échelle", "merdiven", "long fixed painted heavy broken"),
    ),
)
# Things that stand where they are, and vehicles.
FIXTURES = nouns(
    "thing many",
    (
        ("car", "une voiture", "araba", "own vehicle bought fixed washed painted red blue green white stands"),
        ("boat", "un bateau", "tekne", "vehicle bought fixed painted drawn built white blue beautiful"),
        ("table", "une table", "masa", "surface washed painted white heavy bought"),
        ("chair", "une chaise", "sandalye", "surface painted fixed broken white green bought"),
        ("bed", "un lit", "yatak/yatağ", "surface bought heavy"),
        ("cupboard", "une armoire", "dolap/dolab", "painted container white heavy bought holds shuts"),
        ("door", "une porte", "kapı", "painted fixed washed red blue green white stands shuts"),
        ("window", "une fenêtre", "pencere", "washed fixed broken shuts"),
        ("wall", "un mur", "duvar", "painted built stands high climbed white yellow slippery"),
        ("tree", "un arbre", "ağaç/ağac", "drawn stands beautiful green cut looked"),
    ),
)
BUILDINGS = nouns(
    "building place",
    (
        (
            "house",
            "une maison",
            "ev",
            "inside built painted drawn bought stands white beautiful goal roams dining reading many looked",
        ),
        ("school", "une école", "okul", "inside public stands dining reading"),
        ("museum", "un musée", "müze", "inside public visited interesting"),
        ("library", "une bibliothèque", "kütüphane", "inside public quiet reading"),
        ("church", "une église", "kilise", "inside public visited stands quiet beautiful many looked"),
        ("castle", "un château", "şato", "inside visited drawn built stands beautiful strange public many looked"),
        ("hotel", "un hôtel", "otel", "inside public quiet expensive clean dirty dining"),
        ("hospital", "un hôpital", "hastane", "inside clean public"),
        ("restaurant", "un restaurant", "restoran", "inside public expensive clean dirty dining"),
        ("station", "une gare", "istasyon", "inside stands public"),
        ("market", "un marché", "pazar", "public"),
        ("factory", "une usine", "fabrika", "inside dirty public"),
        ("kitchen", "une cuisine", "mutfak/mutfağ", "inside room holds washed painted dining"),
        ("room", "une chambre", "oda", "inside room holds washed painted quiet reading"),
        ("office", "un bureau", "ofis", "inside room holds quiet goal dining reading"),
        ("village", "un village", "köy", "inside visited quiet interesting beautiful roams"),
        ("city", "une ville", "şehir/şehr", "inside visited interesting beautiful"),
        ("farm", "une ferme", "çiftlik/çiftliğ", "visited farm"),
    ),
)
# Places that an animal crosses, enters, explores, leaves, avoids or climbs, or does not, because of what they are like.
LANDS = nouns(
    "land",
    (
        ("street", "une rue", "cadde", "crossed avoided wide crowded slippery dusty dark steep many"),
        ("road", "une route", "yol", "crossed avoided dangerous wide long muddy slippery dusty crowded"),
        ("river", "une rivière", "nehir/nehr", "crossed avoided dangerous wide deep muddy"),
        ("bridge", "un pont", "köprü", "crossed avoided built stands narrow long slippery crowded many looked"),
        ("path", "un sentier", "patika", "avoided crossed narrow steep muddy slippery dark dusty"),
        ("field", "un champ", "tarla", "crossed left wide muddy dusty roams"),
        ("forest", "une forêt", "orman", "crossed entered explored left inside place quiet dangerous dark roams"),
        (
            "garden",
            "un jardin",
            "bahçe",
            "crossed entered left inside place quiet beautiful muddy dark crowded roams goal dining reading",
        ),
        (
            "park",
            "un parc",
            "park",
            "crossed entered left inside place quiet muddy dark crowded roams public dining reading",
        ),
        ("valley", "une vallée", "vadi", "crossed explored entered deep narrow long dark"),
        ("lake", "un lac", "göl", "crossed avoided wide deep muddy"),
        ("swamp", "un marais", "bataklık/bataklığ", "crossed explored avoided dangerous deep dark muddy"),
        ("tunnel", "un tunnel", "tünel", "entered crossed explored narrow long dark muddy"),
        ("square", "une place", "meydan", "crossed avoided left crowded dusty slippery"),
        ("courtyard", "une cour", "avlu", "crossed entered left muddy dusty slippery crowded"),
        ("cave", "une grotte", "mağara", "entered explored left narrow deep dark"),
        ("barn", "une grange", "ahır", "entered left dark dusty crowded roams"),
        ("hill", "une colline", "tepe", "climbed avoided steep high muddy slippery"),
        ("mountain", "une montagne", "dağ", "climbed avoided explored steep high dangerous"),
    ),
)
FISH = nouns("animal living edible single", (("fish/fish", "un poisson", "balık/balığ", "fresh cut bought"),))

ALL: tuple[Noun, ...] = (
    *PEOPLE, *FAMILY, *CHILD, *PROFESSIONS, *ANIMALS, *FOOD, *DISHES, *DRINKS, *TEXTS, *THINGS, *FIXTURES, *BUILDINGS,
    *LANDS, *FISH,
)  # fmt: skip
NAMED = {noun.english: noun for noun in ALL}

# Who hunts whom, for chase and catch, and for eat where it is nobody's pet.
PREY = {
    "cat": ("mouse", "bird", "frog", "fish"),
    "dog": ("cat", "rabbit", "hen", "duck", "squirrel"),
    "fox": ("hen", "rabbit", "duck", "mouse", "squirrel"),
    "wolf": ("goat", "rabbit", "cow", "donkey", "hen"),
    "bear": ("fish", "rabbit", "goat"),
    "lion": ("giraffe", "goat", "cow", "donkey", "horse"),
    "bird": ("ant", "frog", "fish"),
    "frog": ("ant",),
    "hedgehog": ("ant", "mouse", "frog"),
    "duck": ("ant", "frog", "fish"),
    "hen": ("ant",),
}
