"""The names and words from which templates choose. None of them needs escaping in JSON strings or CSV cells."""

from typing import Final

# fmt: off
FIRST_NAMES: Final = (
    "Ada", "Amina", "Anna", "Aoife", "Ben", "Carlos", "Chen", "Clara", "Daniel", "Elif", "Emma", "Fatima", "Felix",
    "Finn", "Grace", "Hana", "Hugo", "Ines", "Ivan", "Jana", "Jonas", "Kofi", "Lea", "Liam", "Lin", "Lucia", "Maja",
    "Marco", "Mei", "Mia", "Mohamed", "Nadia", "Noah", "Nora", "Olga", "Omar", "Paula", "Priya", "Rosa", "Samuel",
    "Sofia", "Tariq", "Tomas", "Uma", "Vera", "Wei", "Yara", "Yuki", "Zoe",
)
LAST_NAMES: Final = (
    "Abebe", "Almeida", "Andersen", "Bauer", "Brown", "Chang", "Costa", "Diallo", "Dubois", "Fischer", "Garcia",
    "Haddad", "Hansen", "Horvat", "Ivanova", "Jansen", "Jones", "Kaya", "Khan", "Kim", "Kowalski", "Kumar",
    "Larsen", "Lopez", "Martin", "Meyer", "Moreau", "Murphy", "Nakamura", "Nguyen", "Novak", "Okafor", "Park",
    "Patel", "Petrov", "Popescu", "Rossi", "Santos", "Sato", "Schmidt", "Silva", "Singh", "Smith", "Tanaka",
    "Virtanen", "Wagner", "Walker", "Wang", "Weber", "Yilmaz",
)
CITIES: Final = (
    "Accra", "Amsterdam", "Ankara", "Athens", "Berlin", "Bogota", "Brno", "Cairo", "Cape Town", "Chennai",
    "Chicago", "Copenhagen", "Dakar", "Dublin", "Ghent", "Hamburg", "Hanoi", "Helsinki", "Istanbul", "Jakarta",
    "Krakow", "Lagos", "Lima", "Lisbon", "London", "Lyon", "Madrid", "Manila", "Melbourne", "Mexico City", "Milan",
    "Montreal", "Nairobi", "New York", "Osaka", "Oslo", "Paris", "Porto", "Prague", "Quito", "Riga", "Santiago",
    "Seoul", "Tallinn", "Tokyo", "Toronto", "Turin", "Vienna", "Warsaw", "Zurich",
)
COUNTRIES: Final = (
    "Argentina", "Australia", "Austria", "Belgium", "Brazil", "Canada", "Chile", "China", "Colombia", "Denmark",
    "Egypt", "Estonia", "Finland", "France", "Germany", "Ghana", "Greece", "India", "Indonesia", "Ireland", "Italy",
    "Japan", "Kenya", "Latvia", "Mexico", "Morocco", "Nigeria", "Norway", "Peru", "Poland", "Portugal", "Senegal",
    "Spain", "Sweden", "Switzerland", "Turkey", "Vietnam",
)
PRODUCTS: Final = (
    "backpack", "bicycle", "blanket", "boots", "bottle", "camera", "candle", "chair", "clock", "desk", "drill",
    "guitar", "hammer", "hat", "headphones", "jacket", "kettle", "keyboard", "lamp", "ladder", "mirror", "monitor",
    "mug", "notebook", "pan", "pencil", "pillow", "rope", "scarf", "shelf", "socks", "speaker", "table", "tent",
    "toaster", "torch", "towel", "umbrella", "vase", "watch",
)
WORDS: Final = (
    "amber", "anchor", "apple", "autumn", "bark", "beacon", "birch", "breeze", "bridge", "canyon", "cedar", "clay",
    "cloud", "coast", "copper", "coral", "crystal", "dawn", "delta", "dune", "echo", "ember", "fern", "field",
    "flint", "forest", "frost", "garden", "glacier", "granite", "harbor", "hazel", "hollow", "indigo", "island",
    "ivory", "jasper", "lagoon", "lantern", "leaf", "lilac", "marble", "meadow", "mist", "moon", "moss", "oak",
    "ocean", "olive", "orchard", "pearl", "pebble", "pine", "prairie", "quartz", "rain", "raven", "reef", "ridge",
    "river", "saffron", "sage", "sand", "shadow", "silver", "sky", "slate", "snow", "spring", "spruce", "star",
    "stone", "storm", "summit", "thunder", "tide", "timber", "valley", "velvet", "violet", "wave", "willow", "wind",
    "winter",
)
# fmt: on
