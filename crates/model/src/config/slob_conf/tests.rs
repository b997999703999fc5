use proptest::prelude::*;

use super::super::{Key, SlobParameters};
use super::*;

/// The value that `assignment` gives to DBA_PRIV_USER, or what is wrong with it.
fn value(assignment: &str) -> Result<String, String> {
    let settings = parse(&format!("DBA_PRIV_USER={assignment}"), "f").map_err(|error| error.to_string())?;
    match settings.as_slice() {
        [setting] => Ok(setting.value.clone()),
        _ => Err(format!("{settings:?}")),
    }
}

fn error(text: &str) -> (String, String) {
    let error = parse(text, "slob.conf").unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}

#[test]
fn the_file_that_slob_ships_loads_unchanged() {
    // Laid out as SLOB 2.5.4 ships it: comments after values, blanks at line ends, empty strings, settings commented out.
    let shipped = "\
#### SLOB 2.5.4.0 slob.conf\n\nUPDATE_PCT=10\nSCAN_PCT=0\nRUN_TIME=300\nWORK_LOOP=0\nSCALE=80M\nSCAN_TABLE_SZ=1M\n\
WORK_UNIT=64\nREDO_STRESS=LITE\nLOAD_PARALLEL_DEGREE=2\n\nTHREADS_PER_SCHEMA=1\n\n\
DATABASE_STATISTICS_TYPE=statspack   # Permitted values: [statspack|awr]\n\n\
#ADMIN_SQLNET_SERVICE=\"if needed, replace with a valid tnsnames.ora service\"\n#\n\
DBA_PRIV_USER=\"system\"               \nSYSDBA_PASSWD=\"manager\"\n\nEXTERNAL_SCRIPT=\"\"\n\n\n\
DO_HOTSPOT=FALSE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=16\nHOTSPOT_FREQUENCY=3\n\n\nHOT_SCHEMA_FREQUENCY=0\n\n\
THINK_TM_FREQUENCY=0\nTHINK_TM_MIN=.1\nTHINK_TM_MAX=.5\n\n\n";
    let parameters = SlobParameters::from_settings(&parse(shipped, "slob.conf").unwrap()).unwrap();
    assert_eq!((parameters.update_pct, parameters.scale.blocks(8192)), (10, 10_240));
    assert_eq!(parameters.connection.dba_priv_user.as_deref(), Some("system"));
    assert_eq!(
        parameters.notes(),
        ["DATABASE_STATISTICS_TYPE, DBA_PRIV_USER, SYSDBA_PASSWD are kept for SQL targets and ignored on this one"]
    );
}

#[test]
fn every_parameter_of_the_list_is_known() {
    let text: String = super::super::PARAMETERS.iter().map(|p| format!("{}={}\n", p.name, p.default)).collect();
    let settings = parse(&text, "slob.conf").unwrap();
    assert_eq!(settings.len(), super::super::PARAMETERS.len());
    assert!(SlobParameters::from_settings(&settings).is_ok());
}

#[test]
fn exports_of_names_set_nothing() {
    let text =
        "UPDATE_PCT=5\nexport UPDATE_PCT RUN_TIME  WORK_LOOP \nexport SCALE\nexport A; # all\n\texport WORK_UNIT=8";
    let shown: Vec<String> = parse(text, "f").unwrap().iter().map(|s| format!("{s:?}")).collect();
    assert_eq!(shown, ["UPDATE_PCT=5 (f:1)", "WORK_UNIT=8 (f:5)"]);
}

#[test]
fn byte_order_mark_and_line_ends_of_any_system_are_tolerated() {
    let settings = parse("\u{feff}UPDATE_PCT=5\r\n\r\n# x\r\nSCALE=1G\r", "f").unwrap();
    assert_eq!(settings.iter().map(|s| s.value.as_str()).collect::<Vec<_>>(), ["5", "1G"]);
}

#[test]
fn values_are_words_of_a_shell() {
    for (assignment, expected) in [
        ("", ""),
        ("5", "5"),
        ("5 # five", "5"),
        ("5\t#five", "5"),
        ("5#five", "5#five"),
        ("#five", "#five"),
        (" # five", ""),
        ("5;", "5"),
        ("5 ; # five", "5"),
        ("'a # b'", "a # b"),
        ("\"a # b\" # c", "a # b"),
        ("\"a\"'b'c", "abc"),
        (r#""a\"b\$c\n""#, r#"a"b$c\n"#),
        (r"'a\b'", r"a\b"),
        (r"a\ b\'c", "a b'c"),
        ("'$HOME `date`'", "$HOME `date`"),
        ("pass$", "pass$"),
        ("\"pass$\"", "pass$"),
        ("5$%", "5$%"),
        ("a=b", "a=b"),
    ] {
        assert_eq!(value(assignment).as_deref(), Ok(expected), "{assignment}");
    }
}

#[test]
fn what_only_a_shell_could_work_out_is_an_error() {
    for (assignment, sign) in [
        ("$(hostname)", "$("),
        ("\"x $(hostname)\"", "$("),
        ("`hostname`", "`"),
        ("\"`hostname`\"", "`"),
        ("$SCALE_MB", "$SCALE_MB"),
        ("\"$SCALE\"", "$SCALE"),
        ("${SCALE:-5}", "${"),
        ("$((2*3))", "$("),
        ("$[2*3]", "$["),
        ("$1", "$1"),
        ("$$", "$$"),
        ("$'x'", "$'"),
        ("$\"x\"", "$\""),
        ("~/run.sh", "~"),
    ] {
        let message = format!("f:1: the value of `DBA_PRIV_USER` holds `{sign}`, which only a shell could replace");
        assert_eq!(value(assignment), Err(message), "{assignment}");
    }
    for assignment in ["a|b", "a&b", "a>b", "<a", "(a b)"] {
        assert!(value(assignment).unwrap_err().contains("outside quotes"), "{assignment}");
    }
}

#[test]
fn errors_name_file_line_and_cure() {
    for (text, message, hint) in [
        (
            "# x\nUPDATE_PCT = 5",
            "slob.conf:2: there is a space beside the `=` of `UPDATE_PCT`",
            "write KEY=VALUE without spaces",
        ),
        (
            "UPDATE_PCT= 5",
            "slob.conf:1: there is a space beside the `=` of `UPDATE_PCT`",
            "write KEY=VALUE without spaces",
        ),
        (
            "UPDATE_PCT=5 SCAN_PCT=5",
            "slob.conf:1: something that is not a comment follows the value of `UPDATE_PCT`",
            "put a value with spaces in quotes, and one setting on a line",
        ),
        (
            "EXTERNAL_SCRIPT=\"a",
            "slob.conf:1: the quotes of `EXTERNAL_SCRIPT` are not closed on this line",
            "close the quotes, or escape a quote that belongs to the value with `\\`",
        ),
        (
            "SCALE=80M \\\n",
            "slob.conf:1: something that is not a comment follows the value of `SCALE`",
            "put a value with spaces in quotes, and one setting on a line",
        ),
        (
            "SCALE=80\\\nM",
            "slob.conf:1: the value of `SCALE` goes on after the end of the line",
            "write the whole value on one line",
        ),
        (
            "\n\nif [ -z x ]; then",
            "slob.conf:3: the line that begins with `if` is neither KEY=VALUE nor a comment",
            "the file is read as text and never executed: keep settings and comments only",
        ),
        (
            "SCALE=$SIZE",
            "slob.conf:1: the value of `SCALE` holds `$SIZE`, which only a shell could replace",
            "write the value itself, since the file is never executed; if the character is meant, use single quotes",
        ),
        (
            "SHARED_DATA_MODULUS=0",
            "slob.conf:1: unknown parameter `SHARED_DATA_MODULUS`",
            "SLOB 2.5 has `HOT_SCHEMA_FREQUENCY` in its place; values may mean something else",
        ),
        (
            "PATH=/bin",
            "slob.conf:1: unknown parameter `PATH`",
            "`--help` lists the parameters; put a `#` before the line if it is not meant for this",
        ),
    ] {
        assert_eq!(error(text), (message.to_owned(), hint.to_owned()));
    }
}

#[test]
fn errors_never_repeat_a_password() {
    for text in [
        "SYSDBA_PASSWD = tiger",
        "SYSDBA_PASSWD tiger",
        "SYSDBA_PASSWD=a tiger",
        "SYSDBA_PASSWD=\"tiger",
        "SYSDBA_PASSWD=tiger|x",
        "SYSDBA_PASSWD=tiger$(x)",
        "SYSDBA_PASS=tiger",
        "sysdba-passwd=tiger",
    ] {
        let (message, hint) = error(text);
        assert!(!message.contains("tiger") && !hint.contains("tiger"), "{message} {hint}");
    }
}

#[test]
fn anything_but_settings_comments_and_exports_is_an_error() {
    for text in
        ["export", "export -p", "export A#B", "5=3", "=3", ";", "declare X=1", "SCALE", "UPDATE_PCT+=5", "a-b=5"]
    {
        assert!(parse(text, "f").is_err(), "{text}");
    }
}

#[test]
fn characters_that_cannot_be_seen_are_refused_in_values_only() {
    assert!(value("a\u{0}b").is_err() && value("a\rb").is_err() && value("'a\u{fffd}'").is_err());
    assert_eq!(value("a # \u{fffd}\u{0}").as_deref(), Ok("a"));
}

#[test]
fn reads_files_and_says_which_one_it_could_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slob.conf");
    let message = read(&path).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("cannot read parameter file `{}`: No such file", path.display())),
        "{message}"
    );
    // A comment in Latin-1.
    std::fs::write(&path, b"# gr\xf6\xdfer\nSCALE=1G\n").unwrap();
    assert_eq!(
        read(&path).unwrap(),
        [Setting {
            key: Key::Scale,
            value: "1G".to_owned(),
            origin: Origin::File { file: path.display().to_string(), line: 2 },
        }]
    );
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(read(&path).unwrap_err().to_string().ends_with("it is larger than 1 MiB"));
    assert!(read(directory.path()).is_err());
}

proptest! {
    #[test]
    fn never_panics_on_any_text(text in "(?s).*") {
        let _ = parse(&text, "f");
    }

    #[test]
    fn never_panics_on_text_that_looks_like_settings(
        text in "((export )?(SCALE|SYSDBA_PASSWD|X)( ?= ?)([ -~]|\"[ -~]*\"|'[^']*'){0,12}[;#\r\n ]{0,3}){0,6}",
    ) {
        if let Ok(settings) = parse(&text, "f") {
            let _ = SlobParameters::from_settings(&settings);
        }
    }

    #[test]
    fn quotes_and_comments_never_change_a_value(
        text in "[^\\p{Cc}\u{fffd}]{0,30}",
        comment in "(| |;| # [^\n]*|\t#x| ; # y)",
    ) {
        prop_assert_eq!(value(&format!("{}{comment}", quoted(&text))), Ok(text.clone()));
        let escaped: String =
            text.chars().flat_map(|c| matches!(c, '"' | '$' | '`' | '\\').then_some('\\').into_iter().chain([c])).collect();
        prop_assert_eq!(value(&format!("\"{escaped}\"{comment}")), Ok(text));
    }
}

#[test]
fn a_pipe_in_place_of_a_parameter_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slob.conf");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }) && error.to_string().contains("it is a pipe"), "{error}");
    let file = std::fs::File::create(folder.path().join("large")).unwrap();
    file.set_len(LARGEST_FILE.0 + 1).unwrap();
    assert!(matches!(read(&folder.path().join("large")), Err(ConfigError::TooLarge { .. })));
}
