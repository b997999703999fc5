//! The user that a private server runs as. No server runs as root.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::ServerKind;
use super::error::PrivateError;
use super::files::file_error;

/// The user that a private server runs as, and that owns its files.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    kind: &'static ServerKind,
    /// Name where it is known, else the number.
    pub(crate) name: String,
    uid: u32,
    gid: u32,
    /// Whether that is another than the one we are.
    other: bool,
}

impl Owner {
    /// Who the server of `data` has to run as: the owner of data that exist; for new data ourselves, or the user
    /// that packages make if we are root.
    ///
    /// # Errors
    /// When we are neither that user nor root, or root finds no user for it.
    pub(crate) fn of(kind: &'static ServerKind, data: &Path) -> Result<Self, PrivateError> {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let existing = match fs::metadata(data) {
            Ok(metadata) => Some((metadata.uid(), metadata.gid())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(file_error("open", data)(error)),
        };
        let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self::choose(kind, existing, me, &users, data)
    }

    /// `existing` and `me` are numbers of user and group.
    fn choose(
        kind: &'static ServerKind,
        existing: Option<(u32, u32)>,
        me: (u32, u32),
        users: &str,
        data: &Path,
    ) -> Result<Self, PrivateError> {
        let ServerKind { product, noun, user, .. } = kind;
        let (uid, gid) = match existing {
            Some(owner) if owner.0 != 0 => owner,
            _ if me.0 != 0 => me,
            _ => user_named(users, user).ok_or_else(|| PrivateError::Unfit {
                what: format!("{product} does not run as root, and there is no user `{user}` to run it as"),
                hint: Some(format!("make one (`useradd --system {user}`), or run as an ordinary user")),
            })?,
        };
        let name = user_numbered(users, uid).unwrap_or_else(|| uid.to_string());
        if me.0 != 0 && me.0 != uid {
            return Err(PrivateError::Unfit {
                what: format!("the {noun} in `{}` belongs to the user `{name}`", data.display()),
                hint: Some(format!("run as `{name}` or as root, or name another directory")),
            });
        }
        Ok(Self { kind, name, uid, gid, other: me.0 != uid })
    }

    /// Whether that is another user than the one we are.
    pub(crate) fn is_other(&self) -> bool {
        self.other
    }

    /// A command that runs as this user, in `/`, in English, and without what the environment says to its programs, which may be
    /// a password.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(Stdio::null()).env("LC_ALL", "C");
        for (name, _) in env::vars_os() {
            let shown = name.to_string_lossy();
            if self.kind.environment.iter().any(|beginning| shown.starts_with(beginning)) {
                command.env_remove(&name);
            }
        }
        if self.other {
            command.gid(self.gid).uid(self.uid);
        }
        command
    }

    /// Makes this user the owner of a file or directory that we have made. Never follows a symbolic link.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn adopt(&self, path: &Path) -> Result<(), PrivateError> {
        if !self.other {
            return Ok(());
        }
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid)).map_err(file_error("change the owner of", path))
    }

    /// Looks whether this user can enter all that exists of `directory`.
    ///
    /// # Errors
    /// When it cannot, with the directory that keeps it out.
    pub(crate) fn check_reach(&self, directory: &Path) -> Result<(), PrivateError> {
        let mut levels: Vec<&Path> = directory.ancestors().filter(|level| level.is_dir()).collect();
        levels.reverse();
        let shell = Path::new("/bin/sh");
        let mut looking = self.command(shell);
        looking.args(["-c", r#"for d do [ -x "$d" ] || { printf %s "$d"; exit 1; }; done"#, "sh"]).args(&levels);
        let seen = looking.output().map_err(file_error("run", shell))?;
        if seen.status.success() {
            return Ok(());
        }
        let closed = String::from_utf8_lossy(&seen.stdout).into_owned();
        Err(PrivateError::Unfit {
            what: format!(
                "the server runs as user `{}`, who may not enter `{closed}`, a part of `{}`",
                self.name,
                directory.display()
            ),
            hint: Some(format!("use a directory that it can reach, or let it in: `chmod o+x {closed}`")),
        })
    }
}

/// Fields of passwd(5): name, password, user, group, …
fn user_named(users: &str, name: &str) -> Option<(u32, u32)> {
    let fields = |line: &str| -> Option<(u32, u32)> {
        let mut fields = line.strip_prefix(name)?.strip_prefix(':')?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    users.lines().find_map(fields)
}

fn user_numbered(users: &str, uid: u32) -> Option<String> {
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&uid.to_string()))?;
    line.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::super::TESTED;
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:7::/:/bin/sh\npostgres:x:102:105:,,,:/var/lib/postgresql:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n";

    fn choose(existing: Option<(u32, u32)>, me: u32, users: &str) -> Result<Owner, PrivateError> {
        Owner::choose(&TESTED, existing, (me, me), users, Path::new("/u01/pg/data"))
    }

    #[test]
    fn root_hands_the_server_to_its_user_or_to_the_owner_of_the_data() {
        let owner = choose(None, 0, USERS).unwrap();
        assert_eq!((owner.name.as_str(), owner.uid, owner.gid, owner.other), ("postgres", 102, 105, true));
        assert_eq!(choose(Some((1000, 1000)), 0, USERS).unwrap().name, "ann");
        let error = choose(None, 0, "root:x:0:0::/:/bin/sh\n").unwrap_err();
        assert!(error.hint().unwrap().contains("useradd"), "{error}");
    }

    #[test]
    fn an_ordinary_user_runs_its_own_server_and_nobody_elses() {
        let owner = choose(None, 1000, USERS).unwrap();
        assert_eq!((owner.name.as_str(), owner.other), ("ann", false));
        let error = choose(Some((102, 105)), 1000, USERS).unwrap_err();
        assert!(error.to_string().contains("belongs to the user `postgres`"), "{error}");
    }

    #[test]
    fn a_directory_that_the_servers_user_cannot_enter_is_named() {
        use std::os::unix::fs::PermissionsExt;

        let outer = tempfile::tempdir().unwrap();
        let owner = Owner::of(&TESTED, &outer.path().join("inner/data")).unwrap();
        if !owner.other {
            return; // Only root has a server of another user.
        }
        fs::create_dir(outer.path().join("inner")).unwrap();
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = owner.check_reach(&outer.path().join("inner/new")).unwrap_err();
        let reported = format!("{error}; {}", error.hint().unwrap());
        assert!(reported.contains(&format!("`chmod o+x {}`", outer.path().display())), "{reported}");
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o711)).unwrap();
        owner.check_reach(&outer.path().join("inner/new")).unwrap();
    }
}
