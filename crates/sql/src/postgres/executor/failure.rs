//! Why an exchange with a server failed.

use std::error::Error;
use std::io;

/// Why an exchange failed.
#[derive(Debug)]
pub(in crate::postgres) enum Failure {
    /// The server refused, and goes on.
    Refused(Report),
    /// The connection has ended, with these last words of the server if it had any.
    Ended(Option<Report>),
    /// The system refuses to send or receive.
    System(io::Error),
    /// The server sent this, which it should not.
    Protocol(&'static str),
    /// A value cannot be sent or read as what it should be.
    Value(Box<dyn Error + Send + Sync>),
}

/// What a server says of an error, or in a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::postgres) struct Report {
    /// In English, whatever the server's language.
    pub(in crate::postgres) severity: String,
    /// SQLSTATE.
    pub(in crate::postgres) code: String,
    pub(in crate::postgres) message: String,
}

impl Report {
    /// Reads the body of an error or a notice.
    pub(super) fn read(body: &[u8]) -> Self {
        let mut report = Self { severity: String::new(), code: String::new(), message: String::new() };
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text);
            match kind {
                b'V' => report.severity = text.into_owned(),
                b'C' => report.code = text.into_owned(),
                b'M' => report.message = text.into_owned(),
                _ => {}
            }
        }
        report
    }

    /// Whether nothing follows on the same connection.
    pub(in crate::postgres) fn ends_the_connection(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_by_its_fields() {
        let report = Report::read(b"SFEHLER\0VERROR\0C40P01\0MVerklemmung\0\0");
        assert_eq!((report.code.as_str(), report.message.as_str()), ("40P01", "Verklemmung"));
        assert!(!report.ends_the_connection());
        assert!(Report::read(b"SSCHWERWIEGEND\0VFATAL\0C57P01\0Mx\0\0").ends_the_connection());
    }
}
