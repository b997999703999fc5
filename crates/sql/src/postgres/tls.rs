//! Encryption of connections, in libpq's modes ("SSL Support" in PostgreSQL's manual).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::ServerError;
use model::config::SecretFile;
use model::config::postgres::{RootCertificates, TlsMode, TlsOptions};

/// How connections over the network are encrypted.
#[derive(Clone)]
pub(super) struct Encryption {
    /// libpq's mode.
    pub(super) mode: TlsMode,
    /// Whether the server's certificate has to be signed by an authority that is trusted, and be of the host that was named.
    pub(super) verifies: bool,
    /// How to make a connection encrypted; `None` where the mode forbids it.
    connector: Option<MakeRustlsConnect>,
}

/// One way of connecting.
#[derive(Clone)]
pub(super) enum Wire {
    /// Not encrypted.
    Plain,
    /// Encrypted if the server can, else plain.
    EncryptedIfPossible(MakeRustlsConnect),
    /// Encrypted.
    Encrypted(MakeRustlsConnect),
}

impl Encryption {
    /// For servers on this machine's sockets, over which nothing is ever encrypted.
    pub(super) fn none() -> Self {
        Self { mode: TlsMode::Disable, verifies: false, connector: None }
    }

    /// As `options` ask for; certificates that they do not name are looked for in `folder`, which is `~/.postgresql`.
    ///
    /// # Errors
    /// When certificates or keys are missing, cannot be read or contradict the mode.
    pub(super) fn new(options: &TlsOptions, folder: Option<&Path>) -> Result<Self, ServerError> {
        let mode = effective_mode(options)?;
        if mode == TlsMode::Disable {
            return Ok(Self::none());
        }
        let provider = Arc::new(ring::default_provider());
        let trust = trust(mode, options, folder)?;
        let verifies = matches!(trust, Trust::Signed { checks_name: true, .. });
        let verifier = Verifier { trust, provider: Arc::clone(&provider) };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has ciphers for both versions of TLS")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match own_certificate(options, folder)? {
            None => builder.with_no_client_auth(),
            Some(Own { chain, key, path }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable("certificate", &path, &format!("with its key: {error}")))?,
        };
        Ok(Self { mode, verifies, connector: Some(MakeRustlsConnect::new(config)) })
    }

    /// The ways of connecting, in the order in which the mode tries them.
    pub(super) fn wires(&self) -> Vec<Wire> {
        let Some(connector) = self.connector.clone() else { return vec![Wire::Plain] };
        match self.mode {
            TlsMode::Disable => vec![Wire::Plain],
            TlsMode::Allow => vec![Wire::Plain, Wire::Encrypted(connector)],
            TlsMode::Prefer => vec![Wire::EncryptedIfPossible(connector), Wire::Plain],
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => vec![Wire::Encrypted(connector)],
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::EncryptedIfPossible(_) => "EncryptedIfPossible",
            Self::Encrypted(_) => "Encrypted",
        })
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// The mode, where none is asked for libpq's usual one. The system's certificates sign for anybody, so they are good only if
/// the host's name is checked as well.
fn effective_mode(options: &TlsOptions) -> Result<TlsMode, ServerError> {
    match (options.mode, &options.root_certificates) {
        (None, Some(RootCertificates::System)) => Ok(TlsMode::VerifyFull),
        (None, _) => Ok(TlsMode::Prefer),
        (Some(mode), Some(RootCertificates::System)) if mode != TlsMode::VerifyFull => Err(ServerError::Unfit {
            what: format!("`sslmode={}` is too weak for `sslrootcert=system`", mode.name()),
            hint: Some("use `sslmode=verify-full`, or name a file of certificates with `sslrootcert`".to_owned()),
        }),
        (Some(mode), _) => Ok(mode),
    }
}

fn unusable(kind: &str, path: &Path, why: &str) -> ServerError {
    ServerError::Unfit { what: format!("the {kind} `{}` cannot be used: {why}", path.display()), hint: None }
}

/// What a server's certificate must be.
#[derive(Debug)]
enum Trust {
    /// Anything.
    Anybody,
    /// Signed by one of these, or one of these itself.
    Signed { roots: RootCertStore, certificates: Vec<CertificateDer<'static>>, checks_name: bool },
}

/// As libpq: a file of root certificates that is there is used in every mode, one that is not there is missed only by those
/// that verify. But one that somebody named is missed always.
fn trust(mode: TlsMode, options: &TlsOptions, folder: Option<&Path>) -> Result<Trust, ServerError> {
    let verifies = matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull);
    let path = match &options.root_certificates {
        Some(RootCertificates::System) => {
            let found = rustls_native_certs::load_native_certs();
            return signed_by(found.certs, mode).ok_or_else(|| ServerError::Unfit {
                what: "this system has no trusted certificates, which `sslrootcert=system` asks for".to_owned(),
                hint: Some("install them (package ca-certificates), or set SSL_CERT_FILE".to_owned()),
            });
        }
        Some(RootCertificates::File(path)) => Some(path.clone()),
        None => folder.map(|folder| folder.join("root.crt")).filter(|path| path.exists()),
    };
    match path {
        Some(path) => {
            let found = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let found = found.map_err(|error| unusable("file of root certificates", &path, &pem_reason(&error)))?;
            signed_by(found, mode)
                .ok_or_else(|| unusable("file of root certificates", &path, "there is no certificate in it"))
        }
        None if verifies => Err(ServerError::Unfit {
            what: format!(
                "`sslmode={}` needs root certificates, and there is no `~/.postgresql/root.crt`",
                mode.name()
            ),
            hint: Some(
                "name the file with `sslrootcert=PATH`, use those of this system with `sslrootcert=system`, or do not \
                 verify with `sslmode=require`"
                    .to_owned(),
            ),
        }),
        None => Ok(Trust::Anybody),
    }
}

/// `None` if no certificate is usable.
fn signed_by(certificates: Vec<CertificateDer<'static>>, mode: TlsMode) -> Option<Trust> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    (!roots.is_empty()).then_some(Trust::Signed { roots, certificates, checks_name: mode == TlsMode::VerifyFull })
}

fn pem_reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "there is nothing in it that it should hold".to_owned(),
        error => error.to_string(),
    }
}

/// Our own certificate.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    path: PathBuf,
}

fn own_certificate(options: &TlsOptions, folder: Option<&Path>) -> Result<Option<Own>, ServerError> {
    let usual = |name: &str| folder.map(|folder| folder.join(name));
    let named = options.certificate.clone();
    let Some(path) = named.or_else(|| usual("postgresql.crt").filter(|path| path.exists())) else { return Ok(None) };
    let chain = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unusable("certificate", &path, &pem_reason(&error)))?;
    let Some(key_path) = options.key.clone().or_else(|| usual("postgresql.key")) else {
        return Err(unusable("certificate", &path, "no key is named for it; name it with `sslkey=PATH`"));
    };
    let key = SecretFile::read(&key_path).and_then(SecretFile::private_key);
    let key = key.map_err(|error| unusable("key", &key_path, &error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| {
        let why = format!("{}; a key that is encrypted with a password is of no use here", pem_reason(&error));
        unusable("key", &key_path, &why)
    })?;
    Ok(Some(Own { chain, key, path }))
}

/// Decides whether to trust a server.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// Checks what a server signed, where it has to prove that a certificate is its own.
    fn signed(
        &self,
        verify: impl FnOnce(&WebPkiSupportedAlgorithms) -> Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match self.trust {
            // Whoever may show any certificate proves nothing by it, and old ones (X.509 version 1) cannot be read.
            Trust::Anybody => Ok(HandshakeSignatureValid::assertion()),
            Trust::Signed { .. } => verify(&self.provider.signature_verification_algorithms),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Signed { roots, certificates, checks_name } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms) {
            Ok(()) => {}
            // A certificate that signed itself is one of an authority, which web browsers refuse for a server. In PostgreSQL it
            // is the usual kind, and trusted by naming it. What remains as "other" was looked at after its dates.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if certificates.contains(end_entity) => {
            }
            Err(error) => return Err(error),
        }
        if *checks_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(|algorithms| verify_tls12_signature(message, certificate, signature, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(|algorithms| verify_tls13_signature(message, certificate, signature, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::test_server::network_server;
    use super::*;

    #[test]
    fn a_certificate_that_signed_itself_is_trusted_by_naming_it_until_it_expires() {
        let Some(server) = network_server(true) else { return };
        let read = |name: &str| CertificateDer::from_pem_file(server.certificate(name)).unwrap();
        let (own, other) = (read("ca.crt"), read("client.crt"));
        let verify = |trusted: &CertificateDer<'static>, now| {
            let trust = signed_by(vec![trusted.clone()], TlsMode::VerifyCa).unwrap();
            let verifier = Verifier { trust, provider: Arc::new(ring::default_provider()) };
            let host = ServerName::try_from("localhost").unwrap();
            verifier.verify_server_cert(&own, &[], &host, &[], now).map(|_| ())
        };
        let now = UnixTime::now();
        let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs() + 3 * 86_400));
        assert_eq!(verify(&own, now), Ok(()));
        let expired = verify(&own, later).unwrap_err();
        assert!(
            matches!(expired, rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { .. })),
            "{expired}"
        );
        assert!(verify(&other, now).is_err());
    }
}
