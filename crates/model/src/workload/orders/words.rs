//! Words that rows of order entry are made of.

/// Countries where customers live, with the language and the territory by which they are known.
pub(super) const COUNTRIES: [(&str, &str, &str); 8] = [
    ("United States", "us", "AMERICA"),
    ("United Kingdom", "gb", "UNITED KINGDOM"),
    ("Germany", "d", "GERMANY"),
    ("France", "f", "FRANCE"),
    ("Italy", "i", "ITALY"),
    ("Spain", "e", "SPAIN"),
    ("Netherlands", "nl", "THE NETHERLANDS"),
    ("Japan", "ja", "JAPAN"),
];

pub(super) const COUNTIES: [&str; 24] = [
    "Adams",
    "Benton",
    "Clark",
    "Douglas",
    "Essex",
    "Franklin",
    "Grant",
    "Hampshire",
    "Jefferson",
    "Kent",
    "Lancaster",
    "Lincoln",
    "Madison",
    "Monroe",
    "Norfolk",
    "Oxford",
    "Pierce",
    "Somerset",
    "Suffolk",
    "Surrey",
    "Union",
    "Warren",
    "Wayne",
    "York",
];

pub(super) const TOWNS: [&str; 32] = [
    "Ashford",
    "Bedford",
    "Bristol",
    "Burlington",
    "Cambridge",
    "Chester",
    "Clayton",
    "Dayton",
    "Dover",
    "Fairview",
    "Georgetown",
    "Greenville",
    "Hudson",
    "Kingston",
    "Lebanon",
    "Lexington",
    "Manchester",
    "Marion",
    "Milford",
    "Milton",
    "Newport",
    "Oakland",
    "Oxford",
    "Riverside",
    "Salem",
    "Springfield",
    "Stafford",
    "Trenton",
    "Washington",
    "Wellington",
    "Winchester",
    "Windsor",
];

pub(super) const STREETS: [&str; 24] = [
    "Bridge", "Cedar", "Chapel", "Church", "Elm", "Forest", "Garden", "Hill", "King", "Lake", "Main", "Maple",
    "Market", "Meadow", "Mill", "North", "Oak", "Orchard", "Park", "River", "School", "South", "Station", "Willow",
];

pub(super) const STREET_KINDS: [&str; 4] = [" Street", " Road", " Lane", " Avenue"];

/// Where mail is sent to: names that nobody can own.
pub(super) const MAIL_DOMAINS: [&str; 4] = ["@example.com", "@example.net", "@example.org", "@mail.example"];

pub(super) const CLASSES: [&str; 4] = ["Occasional", "Regular", "Business", "Prime"];

pub(super) const INTERESTS: [&str; 8] =
    ["Books", "Music", "Garden", "Kitchen", "Sports", "Toys", "Computers", "Photography"];

pub(super) const CARD_TYPES: [&str; 5] = ["Debit", "Credit", "Prepaid", "Charge", "Business Credit"];

/// How orders are delivered: each as often as it stands here.
pub(super) const DELIVERIES: [&str; 7] =
    ["Standard", "Standard", "Standard", "Standard", "Express", "Collection", "Courier"];

pub(super) const WAITS: [&str; 2] = ["ship_asap", "wait_for_all"];

pub(super) const WRAPS: [&str; 4] = ["None", "Plain", "Birthday", "Festive"];

pub(super) const CONDITIONS: [&str; 4] = ["New", "New", "New", "Used"];

pub(super) const QUALITIES: [&str; 16] = [
    "Compact", "Classic", "Deluxe", "Light", "Heavy", "Portable", "Folding", "Wireless", "Solid", "Quiet", "Bright",
    "Slim", "Robust", "Smart", "Simple", "Modern",
];

pub(super) const THINGS: [&str; 24] = [
    "Lamp", "Chair", "Table", "Printer", "Monitor", "Keyboard", "Camera", "Speaker", "Clock", "Radio", "Drill",
    "Ladder", "Kettle", "Toaster", "Mixer", "Tent", "Rucksack", "Bicycle", "Helmet", "Racket", "Puzzle", "Notebook",
    "Lens", "Tripod",
];

pub(super) const PHRASES: [&str; 12] = [
    " made for daily use,",
    " with a warranty of its own,",
    " tested for a thousand hours,",
    " easy to clean and to store,",
    " delivered with all that it needs,",
    " in a box that can be used again,",
    " with spare parts for ten years,",
    " good at home and on the road,",
    " lighter than the one before,",
    " for the left and the right hand,",
    " with a manual in six languages,",
    " as strong as it looks,",
];
