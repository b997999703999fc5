//! Times as `date` writes them.

use super::Began;

/// `Thu Jun 30 22:43:41 UTC 2022`; in locales that report halves of the day `Thu 30 Jun 2022 10:43:41 PM UTC` or, of newer systems,
/// `Thu Jun 30 10:43:41 PM UTC 2022`. The zone counts only where it is universal time, since letters such as `IST` mean several.
pub(super) fn parse(text: &str) -> Option<Began> {
    let words: Vec<&str> = text.split_whitespace().take(12).collect();
    let (time, zone) = match words.as_slice() {
        [_, day, month, year, time, half @ ("AM" | "PM"), zone @ ..] => {
            let time = format!("{month} {day} {year} {time} {half}");
            (jiff::civil::DateTime::strptime("%b %d %Y %I:%M:%S %p", time).ok()?, zone)
        }
        [_, month, day, time, half @ ("AM" | "PM"), zone @ .., year] => {
            let time = format!("{month} {day} {year} {time} {half}");
            (jiff::civil::DateTime::strptime("%b %d %Y %I:%M:%S %p", time).ok()?, zone)
        }
        [_, month, day, time, zone @ .., year] => {
            let time = format!("{month} {day} {year} {time}");
            (jiff::civil::DateTime::strptime("%b %d %Y %H:%M:%S", time).ok()?, zone)
        }
        _ => return None,
    };
    let wall = Began::wall(time)?;
    match zone {
        ["UTC" | "GMT" | "Z"] => Some(Began::Utc(wall.timestamp())),
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
        assert_eq!(["", "07/03/2020 08:09", "Sat Mar 07 2020"].map(parse), [None, None, None]);
    }
}
