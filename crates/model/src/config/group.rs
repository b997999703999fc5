//! Disk groups, as `--group` has them: `NAME=REDUNDANCY[,OPTION…]:MEMBER,MEMBER|MEMBER,MEMBER`.
//!
//! `|` separates failure groups and `,` the members of one; a backslash before `,`, `|` or `\` takes it for a part of the
//! member's path. Options stand before the colon, because addresses of members have colons, `?` and `&` of their own:
//! `data=normal,au=4M,preferred=2:/dev/sdb,/dev/sdc|nfs://filer/vol/d,nfs://filer/vol/e`.

use std::fmt;
use std::str::FromStr;

use miette::Diagnostic;

use super::ConfigError;
use crate::units::Bytes;

/// Members that a group can have.
pub const MAX_MEMBERS: usize = 64;
/// Length of a group's name at most, as disk groups of databases have it.
const MAX_NAME: usize = 30;
const MIN_UNIT: Bytes = Bytes::mib(1);
const MAX_UNIT: Bytes = Bytes::mib(64);
/// Space of a member that holds no data, as far as the smallest allocation unit goes: below it nothing can be laid out.
const MIN_SIZE: Bytes = Bytes::mib(2);

/// How many copies of its data a group keeps, each in another failure group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupRedundancy {
    /// One: what is below cares for redundancy.
    External,
    /// Two.
    Normal,
    /// Three.
    High,
}

impl GroupRedundancy {
    const ALL: [Self; 3] = [Self::External, Self::Normal, Self::High];

    /// Copies of each byte.
    pub const fn copies(self) -> u32 {
        match self {
            Self::External => 1,
            Self::Normal => 2,
            Self::High => 3,
        }
    }

    /// Its name, as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

impl fmt::Display for GroupRedundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A disk group, as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its name: a letter, then letters, digits and `_`, at most 30.
    pub name: String,
    /// Copies of its data.
    pub redundancy: GroupRedundancy,
    /// Members by failure group, as they were written: paths of files and devices, and `nfs://` addresses. Each once, and at
    /// most [`MAX_MEMBERS`]. With external redundancy all are in one list.
    pub failure_groups: Vec<Vec<String>>,
    /// Allocation unit (`au=4M`): a power of two from 1 to 64 MiB. That of the group, or 4 MiB for a new one, where absent.
    pub unit: Option<Bytes>,
    /// Failure group that is read, from 1 (`preferred=2`). Primary copies are read where absent.
    pub preferred: Option<u32>,
    /// Size in which a member that is missing is made, if it is a file (`size=16G`).
    pub size: Option<Bytes>,
    /// Whether the group is opened although members are missing that may have newer data than those that are there (`force`).
    pub force: bool,
    /// Whether a member that is not the group's takes the place of the one that was (`rebuild`); everything on it is lost.
    pub rebuild: bool,
}

impl GroupSpec {
    /// All members, and the failure group that each is in, from 0.
    pub fn members(&self) -> impl Iterator<Item = (u32, &str)> {
        let numbered = (0u32..).zip(&self.failure_groups);
        numbered.flat_map(|(group, members)| members.iter().map(move |member| (group, member.as_str())))
    }
}

/// What is wrong with a disk group, as far as it shows without its members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum GroupProblem {
    /// The text has not the form of a group.
    #[error("`{text}` is not a disk group")]
    #[diagnostic(help("write NAME=REDUNDANCY:MEMBERS, such as `data=normal:/dev/sdb,/dev/sdc|/dev/sdd,/dev/sde`"))]
    Form { text: String },
    /// A name that no group can have.
    #[error("`{name}` is not a name for a disk group")]
    #[diagnostic(help("use a letter, then letters, digits and `_`, at most 30 in all, such as `data`"))]
    Name { name: String },
    /// A redundancy that there is not.
    #[error("disk group `{group}`: `{text}` is not a redundancy")]
    #[diagnostic(help("write `external` (one copy), `normal` (two) or `high` (three)"))]
    Redundancy { group: String, text: String },
    /// An option that there is not.
    #[error("disk group `{group}`: there is no option `{option}`")]
    #[diagnostic(help(
        "options are `au=4M`, `preferred=2`, `size=16G`, `force` and `rebuild`; they stand behind the redundancy: \
         `data=normal,au=4M:a|b`"
    ))]
    Option { group: String, option: String },
    /// An option twice.
    #[error("disk group `{group}`: option `{option}` is listed twice")]
    #[diagnostic(help("give each option once"))]
    OptionTwice { group: String, option: &'static str },
    /// A value that an option cannot have.
    #[error("disk group `{group}`: `{option}={text}` {why}")]
    #[diagnostic(help("{}", values_of(option)))]
    Value { group: String, option: &'static str, text: String, why: String },
    /// A member without a name.
    #[error("disk group `{group}`: a member of failure group {failure_group} is empty")]
    #[diagnostic(help("separate members by one `,` and failure groups by one `|`"))]
    EmptyMember { group: String, failure_group: usize },
    /// A backslash before something that needs none.
    #[error("disk group `{group}`: a backslash stands before something else than `,`, `|` or `\\`")]
    #[diagnostic(help("write `\\\\` for a backslash of a path, `\\,` for a comma and `\\|` for a bar"))]
    Escape { group: String },
    /// A member twice.
    #[error("disk group `{group}`: `{member}` is listed twice")]
    #[diagnostic(help("name each file or device once"))]
    MemberTwice { group: String, member: String },
    /// Too many members.
    #[error("disk group `{group}` has {members} members, and {MAX_MEMBERS} at most are possible")]
    #[diagnostic(help("use fewer and larger members"))]
    TooManyMembers { group: String, members: usize },
    /// Too few failure groups for the copies.
    #[error("disk group `{group}`: {redundancy} redundancy needs {} failure groups, and there {found}", .redundancy.copies(), found = are(*.found))]
    #[diagnostic(help("separate what fails together by `|`, such as the disks of two nodes: `data=normal:a,b|c,d`"))]
    FailureGroups { group: String, redundancy: GroupRedundancy, found: usize },
    /// Failure groups that nothing uses.
    #[error("disk group `{group}`: external redundancy has no failure groups, but there are {found}")]
    #[diagnostic(help("separate all members by `,`, or ask for `normal` redundancy"))]
    ExternalGroups { group: String, found: usize },
}

fn are(count: usize) -> String {
    if count == 1 { "is 1".to_owned() } else { format!("are {count}") }
}

fn values_of(option: &str) -> &'static str {
    match option {
        "au" => "write a power of two from 1M to 64M",
        "preferred" => "failure groups are counted from 1, in the order in which they are written",
        _ => "write a size such as `16G`",
    }
}

impl FromStr for GroupSpec {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(read(text)?)
    }
}

impl From<GroupProblem> for ConfigError {
    fn from(problem: GroupProblem) -> Self {
        Self::Group(problem)
    }
}

fn read(text: &str) -> Result<GroupSpec, GroupProblem> {
    let form = || GroupProblem::Form { text: text.to_owned() };
    if text.chars().any(char::is_control) {
        return Err(form());
    }
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (head, members) = rest.split_once(':').ok_or_else(form)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(plain) || name.len() > MAX_NAME {
        return Err(GroupProblem::Name { name: name.to_owned() });
    }
    let group = || name.to_owned();
    let mut options = head.split(',');
    let word = options.next().unwrap_or_default();
    let redundancy = GroupRedundancy::ALL.into_iter().find(|redundancy| redundancy.name() == word);
    let redundancy = redundancy.ok_or_else(|| GroupProblem::Redundancy { group: group(), text: word.to_owned() })?;
    let failure_groups = split_members(members, name)?;
    check_members(name, redundancy, &failure_groups)?;
    let mut spec = GroupSpec {
        name: group(),
        redundancy,
        failure_groups,
        unit: None,
        preferred: None,
        size: None,
        force: false,
        rebuild: false,
    };
    for option in options {
        take_option(&mut spec, option)?;
    }
    Ok(spec)
}

fn take_option(spec: &mut GroupSpec, option: &str) -> Result<(), GroupProblem> {
    let group = || spec.name.clone();
    let (key, value) = option.split_once('=').map_or((option, None), |(key, value)| (key, Some(value)));
    let wrong =
        |option, text: &str, why: String| GroupProblem::Value { group: group(), option, text: text.to_owned(), why };
    let size = |option, text: &str| {
        text.parse::<Bytes>().map_err(|error| wrong(option, text, format!("is not a size: {}", error.reason)))
    };
    let (twice, name) = match (key, value) {
        ("au", Some(text)) => {
            let unit = size("au", text)?;
            if !unit.0.is_power_of_two() || unit < MIN_UNIT || unit > MAX_UNIT {
                return Err(wrong("au", text, "is not a power of two from 1 MiB to 64 MiB".to_owned()));
            }
            (spec.unit.replace(unit).is_some(), "au")
        }
        ("preferred", Some(text)) => {
            let groups = spec.failure_groups.len();
            let number = text.parse::<u32>().ok().filter(|number| (1..=groups).contains(&(*number as usize)));
            let why = || format!("is not a failure group: there {}", are(groups));
            let number = number.ok_or_else(|| wrong("preferred", text, why()))?;
            (spec.preferred.replace(number).is_some(), "preferred")
        }
        ("size", Some(text)) => {
            let bytes = size("size", text)?;
            if bytes < MIN_SIZE || !bytes.0.is_multiple_of(4096) {
                return Err(wrong("size", text, format!("is not a multiple of 4 KiB from {MIN_SIZE} on")));
            }
            (spec.size.replace(bytes).is_some(), "size")
        }
        ("force", None) => (std::mem::replace(&mut spec.force, true), "force"),
        ("rebuild", None) => (std::mem::replace(&mut spec.rebuild, true), "rebuild"),
        _ => return Err(GroupProblem::Option { group: group(), option: option.to_owned() }),
    };
    if twice { Err(GroupProblem::OptionTwice { group: group(), option: name }) } else { Ok(()) }
}

fn split_members(text: &str, group: &str) -> Result<Vec<Vec<String>>, GroupProblem> {
    let mut groups = vec![vec![String::new()]];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let members = groups.last_mut().expect("there is one from the beginning");
        match character {
            '|' => groups.push(vec![String::new()]),
            ',' => members.push(String::new()),
            plain => {
                let plain = match (plain, plain == '\\') {
                    (_, true) => characters.next().filter(|next| matches!(next, ',' | '|' | '\\')),
                    (plain, false) => Some(plain),
                };
                let plain = plain.ok_or_else(|| GroupProblem::Escape { group: group.to_owned() })?;
                members.last_mut().expect("there is one from the beginning").push(plain);
            }
        }
    }
    Ok(groups)
}

fn check_members(name: &str, redundancy: GroupRedundancy, groups: &[Vec<String>]) -> Result<(), GroupProblem> {
    let group = || name.to_owned();
    let all: Vec<&String> = groups.iter().flatten().collect();
    for (index, members) in groups.iter().enumerate() {
        if members.iter().any(String::is_empty) {
            return Err(GroupProblem::EmptyMember { group: group(), failure_group: index + 1 });
        }
    }
    if let Some((_, member)) = all.iter().enumerate().find(|(index, member)| all[..*index].contains(member)) {
        return Err(GroupProblem::MemberTwice { group: group(), member: (*member).clone() });
    }
    if all.len() > MAX_MEMBERS {
        return Err(GroupProblem::TooManyMembers { group: group(), members: all.len() });
    }
    let found = groups.len();
    if redundancy == GroupRedundancy::External && found > 1 {
        return Err(GroupProblem::ExternalGroups { group: group(), found });
    }
    if found < redundancy.copies() as usize {
        return Err(GroupProblem::FailureGroups { group: group(), redundancy, found });
    }
    Ok(())
}

/// Without loss, so that it can be read back.
fn exact(bytes: Bytes) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(shift, _)| bytes.0 > 0 && bytes.0.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.0.to_string(), |(shift, name)| format!("{}{name}", bytes.0 >> shift))
}

impl fmt::Display for GroupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.redundancy)?;
        if let Some(unit) = self.unit {
            write!(f, ",au={}", exact(unit))?;
        }
        if let Some(preferred) = self.preferred {
            write!(f, ",preferred={preferred}")?;
        }
        if let Some(size) = self.size {
            write!(f, ",size={}", exact(size))?;
        }
        if self.force {
            f.write_str(",force")?;
        }
        if self.rebuild {
            f.write_str(",rebuild")?;
        }
        let written = |member: &String| member.replace('\\', "\\\\").replace(',', "\\,").replace('|', "\\|");
        let group = |members: &Vec<String>| members.iter().map(written).collect::<Vec<_>>().join(",");
        write!(f, ":{}", self.failure_groups.iter().map(group).collect::<Vec<_>>().join("|"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> GroupSpec {
        read(text).unwrap()
    }

    #[test]
    fn a_group_has_a_name_a_redundancy_and_members() {
        let group = parsed("data=normal:a,b,c|d,e,f");
        assert_eq!(
            (group.name.as_str(), group.redundancy, group.unit, group.preferred),
            ("data", GroupRedundancy::Normal, None, None)
        );
        assert_eq!(group.failure_groups, [["a", "b", "c"], ["d", "e", "f"]]);
        assert_eq!(group.members().collect::<Vec<_>>()[2..4], [(0, "c"), (1, "d")]);
    }

    #[test]
    fn options_stand_before_the_colon_and_addresses_keep_their_own() {
        let group = parsed(
            "fra=high,au=1M,preferred=3,size=10G,force,rebuild:/dev/sda|/dev/sdb|nfs://h:2049/v/f?paths=a\\,b&version=3",
        );
        assert_eq!((group.unit, group.preferred, group.size), (Some(Bytes::mib(1)), Some(3), Some(Bytes::gib(10))));
        assert!(group.force && group.rebuild);
        assert_eq!(group.failure_groups[2], ["nfs://h:2049/v/f?paths=a,b&version=3"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, message) in [
            ("data", "`data` is not a disk group"),
            ("data=normal", "`data=normal` is not a disk group"),
            ("1data=normal:a|b", "`1data` is not a name for a disk group"),
            ("data=double:a|b", "disk group `data`: `double` is not a redundancy"),
            ("data=normal,ua=4M:a|b", "disk group `data`: there is no option `ua=4M`"),
            ("data=normal,force=1:a|b", "disk group `data`: there is no option `force=1`"),
            ("data=normal,au=4M,au=4M:a|b", "disk group `data`: option `au` is listed twice"),
            ("data=normal,au=3M:a|b", "disk group `data`: `au=3M` is not a power of two from 1 MiB to 64 MiB"),
            ("data=normal,au=128M:a|b", "disk group `data`: `au=128M` is not a power of two from 1 MiB to 64 MiB"),
            ("data=normal,preferred=3:a|b", "disk group `data`: `preferred=3` is not a failure group: there are 2"),
            ("data=normal,size=1K:a|b", "disk group `data`: `size=1K` is not a multiple of 4 KiB from 2 MiB on"),
            ("data=normal:a,|b", "disk group `data`: a member of failure group 1 is empty"),
            ("data=normal:a|", "disk group `data`: a member of failure group 2 is empty"),
            ("data=normal:a|b,a", "disk group `data`: `a` is listed twice"),
            ("data=normal:a\\b|c", "disk group `data`: a backslash stands before something else than `,`, `|` or `\\`"),
            ("data=normal:a,b", "disk group `data`: normal redundancy needs 2 failure groups, and there is 1"),
            ("data=high:a|b", "disk group `data`: high redundancy needs 3 failure groups, and there are 2"),
            ("data=external:a|b", "disk group `data`: external redundancy has no failure groups, but there are 2"),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.to_string(), message);
            assert!(crate::hint(&problem).is_some());
        }
        let many = (0..=MAX_MEMBERS).map(|number| format!("m{number}")).collect::<Vec<_>>().join(",");
        assert!(matches!(read(&format!("d=external:{many}")), Err(GroupProblem::TooManyMembers { members: 65, .. })));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            name in "[a-z][a-z0-9_]{0,9}",
            redundancy in 0..3usize,
            members in prop::collection::hash_set("[ -~]{1,12}", 6..12),
            unit in prop::option::of(0..7u32),
            preferred in prop::option::of(1..=3u32),
            size in prop::option::of(512..1u64 << 30),
            flags: (bool, bool),
        ) {
            let redundancy = GroupRedundancy::ALL[redundancy];
            let members: Vec<String> = members.into_iter().collect();
            let failure_groups = match redundancy {
                GroupRedundancy::External => vec![members],
                _ => members.chunks(members.len().div_ceil(3)).map(<[String]>::to_vec).collect(),
            };
            let preferred = preferred.filter(|number| *number as usize <= failure_groups.len());
            let spec = GroupSpec {
                name,
                redundancy,
                failure_groups,
                unit: unit.map(|shift| Bytes::mib(1 << shift)),
                preferred,
                size: size.map(|pages| Bytes(pages * 4096)),
                force: flags.0,
                rebuild: flags.1,
            };
            prop_assert_eq!(read(&spec.to_string()), Ok(spec));
        }

        #[test]
        fn no_text_panics(text in "(data=)?(normal|high|external)?[ -~]{0,40}") {
            let _ = read(&text);
        }
    }
}
