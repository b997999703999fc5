//! Times as `date` writes them.

use super::{Began, calendar};

/// `Thu Jun 30 22:43:41 UTC 2022`, `Thu 30 Jun 2022 10:43:41 PM UTC`, `jeu. 30 juin 2022 22:43:41 CEST`, `2022年 6月 30日 木曜日 22:43:41
/// JST`: every language has an order of its own, and what each word is shows in itself. The zone counts only where it is universal
/// time, since letters such as `IST` mean several.
pub(super) fn parse(text: &str) -> Option<Began> {
    let (mut year, mut month, mut day, mut clock, mut zone) = (None, None, None, None, Vec::new());
    for word in text.split_whitespace().take(12) {
        let bare = word.trim_end_matches([',', '.', '年', '년', '日', '일']);
        let digits = if bare.bytes().all(|byte| byte.is_ascii_digit()) { bare.len() } else { 0 };
        match (digits, clock) {
            (4, _) if year.is_none() => year = bare.parse().ok(),
            (1 | 2, _) if day.is_none() => day = bare.parse().ok(),
            // The name of a day may begin as that of a month does, and stands before it: the last of them is the month.
            (_, None) if !word.contains(':') => month = calendar::month(bare).or(month),
            (_, None) => clock = Some(jiff::civil::Time::strptime("%H:%M:%S", bare).ok()?),
            (_, Some(time)) => match calendar::hour(time.hour(), word) {
                Some(hour) => clock = jiff::civil::Time::new(hour, time.minute(), time.second(), 0).ok(),
                None => zone.push(word),
            },
        }
    }
    let time = jiff::civil::Date::new(year?, month?, day?).ok()?.to_datetime(clock?);
    let wall = Began::wall(time)?;
    match zone[..] {
        ["UTC" | "GMT" | "Z" | "+00"] => Some(Began::Utc(wall.timestamp())),
        _ => Some(wall),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_universal_time_is_taken_for_a_zone() {
        let utc = parse("Sat Mar  7 08:09:10 UTC 2020").unwrap();
        assert!(matches!(utc, Began::Utc(_)));
        assert_eq!(utc.timestamp().0.to_string(), "2020-03-07T08:09:10Z");
        assert_eq!(parse("Sat Mar 07 08:09:10 Pacific Standard Time 2020"), Some(Began::Wall(utc.timestamp())));
        assert_eq!(parse("Sat 07 Mar 2020 08:09:10 AM GMT"), Some(utc));
        assert_eq!(parse("Sat Mar  7 08:09:10 AM UTC 2020"), Some(utc));
        assert_eq!(parse("Sat Mar  7 08:09:10 PM IST 2020"), parse("Sat Mar  7 20:09:10 IST 2020"));
        for other in [
            "Sa 7. Mär 08:09:10 UTC 2020",
            "sam. 07 mars 2020 08:09:10 UTC",
            "sob, 7 mar 2020, 08:09:10 UTC",
            "2020年  3月  7日 土曜日 08:09:10 UTC",
            "Cts 07 Mar 2020 08:09:10 +00",
        ] {
            assert_eq!(parse(other), Some(utc), "{other}");
        }
        assert_eq!(["", "07/03/2020 08:09", "Sat Mar 07 2020"].map(parse), [None, None, None]);
    }
}
