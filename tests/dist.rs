//! Release files: how they are packed, and, where `make dist` has built them, how they work where nothing else is installed.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use test_support::skip;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How `packaging/try` ends where it cannot be run.
const CANNOT: i32 = 77;

/// What `packaging/try` prints of these files, and of these parts of them (all if none is given).
fn tried(directory: &Path, parts: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/try");
    let answer = Command::new(script).arg(directory).args(parts).output().expect("a script can be started");
    let reported = String::from_utf8_lossy(&answer.stdout);
    match answer.status.code() {
        Some(0) => {}
        Some(CANNOT) => skip::skip(reported.trim_end().rsplit("skipped: ").next().unwrap_or_default()),
        _ => panic!("{}: {reported}{}", answer.status, String::from_utf8_lossy(&answer.stderr)),
    }
}

#[test]
fn release_files_work_in_an_empty_root_and_in_a_bare_debian_and_leave_nothing() {
    tried(Path::new("dist"), &[]);
}

/// A program that stands for Plimsoll where release files are made and tried: it answers what is looked for, and nothing else.
const STAND_IN: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", words[count - 1], strcmp(words[1], "manual") ? "" : "/plimsoll.1");
    if (!strcmp(words[1], "manual") || !strcmp(words[1], "report")) {
        FILE *file = fopen(path, "w");
        return !file || fputs(".TH plimsoll 1\nPNG\n", file) < 0 || fclose(file);
    }
    puts("plimsoll 0.0.0, with io_uring");
    return 0;
}
"#;

/// Builds it as a static program, which needs a C compiler and its library.
fn stand_in(place: &Path) -> Option<PathBuf> {
    let (source, program) = (place.join("stand-in.c"), place.join("stand-in"));
    std::fs::write(&source, STAND_IN).unwrap();
    let built = Command::new("cc").args(["-static", "-s", "-o"]).args([&program, &source]).output();
    if built.is_ok_and(|built| built.status.success()) {
        return Some(program);
    }
    skip::skip("`cc` cannot link a static program to pack");
    None
}

/// Runs a script of `packaging`, and returns what it printed.
fn script(name: &str, arguments: &[&OsStr], variables: &[(&str, &OsStr)]) -> (Option<i32>, String) {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name));
    command.args(arguments).env("SOURCE_DATE_EPOCH", "1800000000").env_remove("MINISIGN_KEY");
    command.envs(variables.iter().copied());
    let answer = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (answer.status.code(), text(&answer.stdout) + &text(&answer.stderr))
}

#[test]
fn the_same_program_makes_the_same_release_files_which_work_and_leave_nothing() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = stand_in(place.path()) else { return };
    let mut program_of = OsString::from(format!("{}=", std::env::consts::ARCH));
    program_of.push(&program);
    let packed = ["one", "two"].map(|name| {
        let directory = place.path().join(name);
        let zone = OsStr::new(if name == "one" { "UTC" } else { "Asia/Kathmandu" });
        let (code, said) = script("pack", &[directory.as_os_str(), &program_of], &[("TZ", zone)]);
        assert_eq!(code, Some(0), "{said}");
        // The second is packed a second later.
        std::thread::sleep(std::time::Duration::from_secs(1));
        (std::fs::read_to_string(directory.join("SHA256SUMS")).unwrap(), said)
    });
    let [(sums, said), (sums_again, _)] = packed;
    assert_eq!(sums, sums_again);
    let tools = [("rpmbuild", ".rpm"), ("dpkg-deb", ".deb")];
    let skipped: Vec<_> = tools.iter().filter(|(tool, _)| said.contains(&format!("`{tool}` is not here"))).collect();
    for (tool, _) in &skipped {
        skip::skip(format!("`{tool}` is not installed, to make a package"));
    }
    let not_built = |end: &str| skipped.iter().any(|(_, of)| *of == end);
    for end in ["-linux.tar.gz", "-linux.spdx", "-oci.tar", ".rpm", ".deb"] {
        assert!(sums.lines().any(|line| line.ends_with(end)) || not_built(end), "{end}: {sums}");
    }
    tried(&place.path().join("two"), &["archive", "image", "rpm"]);
}

#[test]
fn the_checksums_are_signed_with_their_version_by_a_key_that_is_given() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let signed = |key: &Path| script("sign", &[place.path().as_os_str()], &[("MINISIGN_KEY", key.as_os_str())]);
    let (code, said) = signed(&at("none"));
    assert!(code == Some(2) && said.contains("cannot be read") && said.contains("hint: MINISIGN_KEY="), "{said}");
    // A key without a passphrase, of which nothing is published.
    let mut make = Command::new("minisign");
    let Ok(made) = make.args(["-G", "-W", "-p", "public", "-s", "secret"]).current_dir(place.path()).output() else {
        return skip::skip("`minisign` is not installed, to sign release files");
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (code, said) = signed(&at("secret"));
    assert!(code == Some(2) && said.contains("no checksums") && said.contains("hint: `make dist`"), "{said}");

    let sums = format!("{}  plimsoll-9.8.7-oci.tar\n", "0".repeat(64));
    std::fs::write(at("SHA256SUMS"), &sums).unwrap();
    let (code, said) = signed(&at("secret"));
    assert_eq!(code, Some(0), "{said}");
    let verified = || {
        let mut verify = Command::new("minisign");
        verify.args(["-V", "-p", "public", "-m", "SHA256SUMS"]).current_dir(place.path());
        let answer = verify.output().unwrap();
        (answer.status.success(), String::from_utf8_lossy(&answer.stdout).into_owned())
    };
    let (is_valid, said) = verified();
    assert!(is_valid && said.contains("Trusted comment: plimsoll 9.8.7\n"), "{said}");
    let signature = std::fs::read(at("SHA256SUMS.minisig")).unwrap();
    assert_eq!(signed(&at("secret")).0, Some(0));
    assert_eq!(signature, std::fs::read(at("SHA256SUMS.minisig")).unwrap());
    std::fs::write(at("SHA256SUMS"), sums.replace('0', "1")).unwrap();
    assert!(!verified().0, "other checksums are not signed");
}

#[test]
fn the_pages_name_the_files_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for page in [include_str!("../README.md"), include_str!("../docs/start/install.md")] {
        for file in [
            format!("plimsoll_{version}_amd64.deb"),
            format!("plimsoll-{version}-1.x86_64.rpm"),
            format!("plimsoll-{version}-x86_64-linux.tar.gz"),
        ] {
            assert!(page.contains(&file), "a page does not name {file}");
        }
    }
    let page = include_str!("../docs/start/install.md");
    assert!(
        page.matches(&format!("plimsoll-{version}-oci.tar")).count() == 2
            && page.contains(&format!("plimsoll:{version} "))
    );
}

/// Runs the script that continuous integration calls, in `place`, on a release that holds this program.
fn in_ci(place: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let root = place.join("plimsoll-test-linux");
    if !root.exists() {
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plimsoll"), root.join("bin/plimsoll")).unwrap();
        let mut pack = Command::new("tar");
        pack.args(["-chzf", "release.tar.gz", "plimsoll-test-linux"]).current_dir(place);
        assert!(pack.status().unwrap().success());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/ci/run");
    let mut command = Command::new(script);
    command.current_dir(place).env_remove("GITHUB_STEP_SUMMARY").env_remove("SHA256");
    let answer = command.env("ARCHIVE", "release.tar.gz").envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (answer.status.code(), text(&answer.stdout) + &text(&answer.stderr))
}

#[test]
fn continuous_integration_shows_what_a_release_answers() {
    let place = tempfile::tempdir().unwrap();
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap_or_default();
    let check = "check --reads 9000@5ms --for 60 --quiet sim:iops_cap=8000,clock=simulated";
    let (code, said) = in_ci(place.path(), &[("WORDS", check), ("GITHUB_STEP_SUMMARY", "page.md")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("No. ") && said.contains("\n::error title=check (simulated)::No: 9,000 reads/s"), "{said}");
    assert!(read("plimsoll.xml").contains(r#"tests="2" failures="2""#), "{}", read("plimsoll.xml"));
    assert!(read("page.md").contains("- ALSO: ") && read("page.md") == read("plimsoll.md"), "{}", read("page.md"));
    // What was not begun leaves no answer of another run, and what was not promised is not run.
    let (code, said) = in_ci(place.path(), &[("WORDS", "check --no-such-flag")]);
    assert!(code == Some(2) && read("plimsoll.xml").is_empty() && read("plimsoll.md").is_empty(), "{said}");
    let (code, said) = in_ci(place.path(), &[("WORDS", check), ("SHA256", "0123")]);
    assert!(code == Some(2) && said.contains("is another file") && said.contains("hint: "), "{said}");
    let (code, said) = in_ci(place.path(), &[("WORDS", check), ("ARCHIVE", "https://[::1]:1/x.tar.gz")]);
    assert!(code == Some(2) && said.contains("has no checksum"), "{said}");
    for (variable, value, why) in [
        ("WORDS", " ", "no command is given"),
        ("WORDS", "check --runs elsewhere", "`--runs` is not for here"),
        ("ARCHIVE", "", "no release is given"),
        ("ARCHIVE", "/dev/null", "is no release file"),
    ] {
        let (code, said) = in_ci(place.path(), &[("WORDS", check), (variable, value)]);
        assert!(code == Some(2) && said.contains(why) && said.contains("hint: "), "{said}");
    }
    let load = "io run --path sim:service=1ms,clock=simulated --pattern randread --duration 1 --quiet";
    let (code, said) = in_ci(place.path(), &[("WORDS", load), ("GITHUB_STEP_SUMMARY", "plain.md")]);
    assert!(code == Some(0) && !said.contains("::") && !said.contains("error:"), "without limits: {said}");
    assert!(read("plain.md").starts_with("<!-- plimsoll -->\n### ") && read("plimsoll.xml").is_empty(), "{said}");
    let (code, said) = in_ci(place.path(), &[("WORDS", load)]);
    assert_eq!(code, Some(0), "{said}");
    let mut runs: Vec<String> = std::fs::read_dir(place.path().join("plimsoll-runs"))
        .unwrap()
        .map(|run| run.unwrap().file_name().into_string().unwrap())
        .collect();
    runs.sort();
    let (code, said) = in_ci(place.path(), &[("WORDS", "compare --history --github")]);
    assert!(code == Some(2) && said.contains("have their places here"), "{said}");
    let words = format!("compare {} {} --full", runs[1], runs[2]);
    let (code, said) = in_ci(place.path(), &[("WORDS", &words), ("GITHUB_STEP_SUMMARY", "more.md")]);
    let (page, cases) = (read("more.md"), read("plimsoll.xml").matches("<testcase ").count());
    assert!(code.is_some_and(|code| code < 2) && page.starts_with("<!-- plimsoll -->"), "{said}\n{page}");
    // `--full` prints sentences, and goes not with annotations.
    let annotations = said.lines().filter(|line| line.starts_with("::") && line.contains(" title=")).count();
    assert!(cases > 0 && annotations == cases, "{said}");
}

/// Licences by which parts of the program may be passed on without its source.
const LICENCES: [&str; 14] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "0BSD",
    "Zlib",
    "BSL-1.0",
    "Unlicense",
    "Unicode-3.0",
    "UPL-1.0",
    "CDLA-Permissive-2.0",
    "Bitstream-Vera",
];

#[test]
fn every_part_of_the_program_is_in_its_bill_of_materials_under_a_licence_that_we_may_pass_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new(root.join("packaging/sbom")).arg("x86_64-unknown-linux-gnu").output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.status.success() && text.starts_with("SPDXVersion: SPDX-2.3\n"), "{text}");
    let of = |tag: &str| -> Vec<&str> { text.lines().filter_map(|line| line.strip_prefix(tag)).collect() };
    let (names, mut ids) = (of("PackageName: "), of("SPDXID: "));
    assert!(["serde", "mysql_common", "rust-std", "DejaVuSans"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(!["serde_derive", "syn", "quote"].iter().any(|name| names.contains(name)), "a macro is not in the program");
    let contained = of("Relationship: SPDXRef-plimsoll CONTAINS ");
    assert!(contained.len() > 100 && contained.iter().all(|id| ids.contains(id)), "{contained:?}");
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), names.len() + 1), (all, all));
    // Of a choice one is enough; of what is joined by AND all are needed.
    let is_free =
        |licence: &str| LICENCES.contains(&licence.trim_matches(['(', ')', ' ']).split(" WITH ").next().unwrap());
    let other = |licences: &&str| !licences.split(" AND ").all(|choice| choice.split(" OR ").any(is_free));
    assert_eq!(of("PackageLicenseDeclared: ").iter().find(|licences| other(licences)), None);
}

#[test]
fn the_units_of_systemd_run_a_command_that_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unit = root.join("packaging/systemd/plimsoll-nightly.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    let words = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/plimsoll ")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let example = root.join("examples/flashgrid.toml").display().to_string();
    let words = words.replace("/etc/plimsoll/nightly.toml", &example).replace("/var/lib/plimsoll/", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let answer = command.args(words.split(' ')).arg("--dry-run").current_dir(place.path()).output().unwrap();
    assert!(answer.status.success(), "{words}: {}", String::from_utf8_lossy(&answer.stderr));
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() else {
        return skip::skip("`systemd-analyze` is not installed");
    };
    // The program and its manual are not installed here.
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let is_fault =
        |line: &&str| line.contains("plimsoll-nightly") && !line.contains("not executable") && !line.contains("'man ");
    assert_eq!(said.lines().find(is_fault), None);
}

/// A program that stands for one of tests: `FAILS` says in which of its runs its test fails.
const TESTS: &str = r#"#!/bin/sh
case "$*" in *--exact*) again=yes ;; *) again=no ;; esac
case "$(cat "$0.fails")$again" in
once"no" | "always"*) echo "test a::b ... FAILED"; echo "test result: FAILED. 0 passed; 1 failed; 0 ignored"; exit 101 ;;
crash*) exit 134 ;;
esac
echo "test a::b ... ok"
echo "test result: ok. 1 passed; 0 failed; 0 ignored"
"#;

#[test]
fn a_failed_test_runs_once_more_alone_and_counts_where_it_fails_again() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let programs = ["one-0a", "two-0b"].map(|name| write(name, TESTS).display().to_string());
    let built: String =
        programs.iter().map(|path| format!("echo '{{\"test\":true}},\"executable\":\"{path}\"}}'\n")).collect();
    let target = place.path().join("target");
    let cargo = format!(
        "#!/bin/sh\ncase \"$*\" in\n*no-run*) {built} ;;\n*metadata*) echo '{{\"target_directory\":\"{}\"}}' ;;\nesac\n",
        target.display()
    );
    let cargo = write("cargo", &cargo);
    for (fails, code, said) in [
        (["no", "no"], 0, "2 tests passed, 0 failed, in"),
        (["once", "no"], 0, "Unsteady: failed beside others, passed alone"),
        (["once", "always"], 1, "Failed:\n    two a::b"),
        (["crash", "no"], 1, "one ended with 134 before its tests had"),
    ] {
        write("one-0a.fails", fails[0]);
        write("two-0b.fails", fails[1]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
        let answer = Command::new(script).env("CARGO", &cargo).output().unwrap();
        let text = String::from_utf8_lossy(&answer.stdout);
        assert_eq!((answer.status.code(), text.contains(said)), (Some(code), true), "{fails:?}: {text}");
    }
}
