//! Names of months and halves of the day in the languages that programs write them in.

/// How names of months begin, in small letters, January first. Where two languages call two months alike, as Croatian and Polish do
/// with `lip`, the one is here of whose country reports are seen.
const BEGINNINGS: [&str; 12] = [
    "jan ene gen ian jaan oca sty led tam sau янв січ яну ιαν يناير ינו",
    "feb fév fev helm hel şub lut úno úno veebr vas фев лют φεβ فبراير פבר",
    "mar mär már mrz mrt maal maalis bře kov march märts мар бер μαρ μάρ مارس מרץ",
    "apr abr avr ápr huht huh nis kwi dub bal апр кві απρ أبريل אפר",
    "may mai mag maj mei máj touk tou kvě geg май мая тра μαϊ μάι μαΐ μαι مايو מאי",
    "jun juin giu jún jūn iun juuni kesä kes haz cze čen čvn čer červen bir июн юни чер ιουν يونيو יונ",
    "jul juil lug júl jūl iul juuli hein hei tem lip čec čvc červenec lie июл юли лип ιουλ يوليو יול",
    "aug ago aoû aou avg agt ags elok elo ağu sie srp rgp rugpj авг сер αυγ أغسطس אוג",
    "sep set szep syys syy eyl wrz zář rgs rugsė сен сеп вер σεπ سبتمبر ספט",
    "oct okt ott out lok loka eki paź říj spa окт жов οκτ أكتوبر אוק",
    "nov noi marras kas lis lap ноя ное лис νοε نوفمبر נוב",
    "dec des dez dic déc dets joul jou ara gru pro дек гру δεκ ديسمبر דצמ",
];

/// The number of a month from 1, by its name or the beginning of it; of Chinese, Japanese and Korean by its number. `\u{fffd}` stands
/// for a letter that was no UTF-8. Nothing where two months may be meant.
pub(super) fn month(word: &str) -> Option<i8> {
    let word = word.trim_matches(['.', ',', ' ']).to_lowercase();
    if let Some(number) = word.strip_suffix(['月', '월']) {
        return number.parse().ok().filter(|number| (1..=12).contains(number));
    }
    let mut longest: Option<(usize, usize)> = None;
    for (month, names) in BEGINNINGS.iter().enumerate() {
        for length in names.split(' ').filter_map(|name| begins(&word, name)) {
            match longest {
                Some((most, of)) if most == length && of != month => return None,
                Some((most, _)) if most >= length => {}
                _ => longest = Some((length, month)),
            }
        }
    }
    longest.and_then(|(_, month)| i8::try_from(month + 1).ok())
}

/// Words for the first half of the day and for the second, without points and in small letters.
const HALVES: [[&str; 6]; 2] = [["am", "上午", "午前", "오전", "öö", "πμ"], ["pm", "下午", "午後", "오후", "ös", "μμ"]];

/// The hour of 24 by that of 12, where a word names the half of the day.
pub(super) fn hour(hour: i8, word: &str) -> Option<i8> {
    let word = word.replace('.', "").to_lowercase();
    let half = HALVES.iter().position(|words| words.contains(&word.as_str()))?;
    Some(match (hour, half) {
        (12, 0) => 0,
        (1..=11, 1) => hour + 12,
        _ => hour,
    })
}

/// A text without the half of the day that it begins with, as Chinese, Japanese and Korean write it before the time.
pub(super) fn half_before(text: &str) -> Option<(&str, &str)> {
    let halves =
        HALVES.iter().flatten().filter(|half| !half.starts_with(|c: char| c.is_alphabetic() && c < '\u{1100}'));
    halves.into_iter().find_map(|half| Some((*half, text.strip_prefix(half)?.trim_start())))
}

/// The length of `name` in characters, if the word begins so.
fn begins(word: &str, name: &str) -> Option<usize> {
    let mut rest = word.chars();
    let mut length = 0;
    for letter in name.chars() {
        let read = rest.next()?;
        if read != letter && (read != char::REPLACEMENT_CHARACTER || letter.is_ascii()) {
            return None;
        }
        length += 1;
    }
    Some(length)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A language, and its months as Oracle or the C library abbreviates them.
    pub const LANGUAGES: [(&str, &str); 28] = [
        ("English", "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
        ("German", "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez"),
        ("French", "Janv. Févr. Mars Avr. Mai Juin Juil. Août Sept. Oct. Nov. Déc."),
        ("Spanish", "Ene Feb Mar Abr May Jun Jul Ago Sep Oct Nov Dic"),
        ("Italian", "Gen Feb Mar Apr Mag Giu Lug Ago Set Ott Nov Dic"),
        ("Portuguese", "Jan Fev Mar Abr Mai Jun Jul Ago Set Out Nov Dez"),
        ("Dutch", "Jan Feb Mrt Apr Mei Jun Jul Aug Sep Okt Nov Dec"),
        ("Danish", "Jan Feb Mar Apr Maj Jun Jul Aug Sep Okt Nov Dec"),
        ("Swedish", "Jan Feb Mars April Maj Juni Juli Aug Sept Okt Nov Dec"),
        ("Norwegian", "Jan Feb Mar Apr Mai Jun Jul Aug Sep Okt Nov Des"),
        ("Finnish", "Tammi Helmi Maalis Huhti Touko Kesä Heinä Elo Syys Loka Marras Joulu"),
        ("Polish", "Sty Lut Mar Kwi Maj Cze Lip Sie Wrz Paź Lis Gru"),
        ("Czech", "Led Úno Bře Dub Kvě Čvn Čvc Srp Zář Říj Lis Pro"),
        ("Slovak", "Jan Feb Mar Apr Máj Jún Júl Aug Sep Okt Nov Dec"),
        ("Hungarian", "Jan Feb Már Ápr Máj Jún Júl Aug Szept Okt Nov Dec"),
        ("Romanian", "Ian Feb Mar Apr Mai Iun Iul Aug Sep Oct Noi Dec"),
        ("Turkish", "Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara"),
        ("Slovenian", "Jan Feb Mar Apr Maj Jun Jul Avg Sep Okt Nov Dec"),
        ("Estonian", "Jaan Veebr Märts Apr Mai Juuni Juuli Aug Sept Okt Nov Dets"),
        ("Latvian", "Jan Feb Mar Apr Mai Jūn Jūl Aug Sep Okt Nov Dec"),
        ("Lithuanian", "Sau Vas Kov Bal Geg Bir Lie Rgp Rgs Spa Lap Gru"),
        ("Catalan", "Gen Febr Març Abr Maig Juny Jul Ago Set Oct Nov Des"),
        ("Indonesian", "Jan Feb Mar Apr Mei Jun Jul Agt Sep Okt Nov Des"),
        ("Russian", "Янв Фев Мар Апр Май Июн Июл Авг Сен Окт Ноя Дек"),
        ("Ukrainian", "Січ Лют Бер Кві Тра Чер Лип Сер Вер Жов Лис Гру"),
        ("Bulgarian", "Яну Фев Мар Апр Май Юни Юли Авг Сеп Окт Ное Дек"),
        ("Greek", "Ιαν Φεβ Μαρ Απρ Μαϊ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ"),
        ("Japanese", "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月"),
    ];

    #[test]
    fn months_of_28_languages_are_known_in_any_case() {
        for (language, names) in LANGUAGES {
            for (name, number) in names.split(' ').zip(1..) {
                for written in [name.to_owned(), name.to_uppercase(), name.to_lowercase()] {
                    assert_eq!(month(&written), Some(number), "{language}: {written}");
                }
            }
        }
        let long = ["Červenec", "června", "marraskuu", "Eylül", "października", "Września"].map(month);
        assert_eq!(long, [7, 6, 11, 9, 10, 9].map(Some));
    }

    #[test]
    fn a_letter_that_was_no_text_is_any_but_an_english_one() {
        assert_eq!(
            ["M\u{fffd}R", "\u{fffd}ub", "A\u{fffd}u", "D\u{fffd}c.", "Pa\u{fffd}"].map(month),
            [3, 2, 8, 12, 10].map(Some)
        );
        assert_eq!(["\u{fffd}\u{fffd}\u{fffd}", "Xyz", "", "13月", "J"].map(month), [None; 5]);
    }
}
