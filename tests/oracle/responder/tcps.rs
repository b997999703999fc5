//! TLS before a responder: what a listener of TCPS adds to one of TCP.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio_rustls::TlsAcceptor;

/// A port that speaks TLS and hands on what is in it. It closes when it is dropped.
pub struct Tcps {
    port: u16,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Tcps {
    /// Before the listener at `to`, with the certificate and the key in these files.
    pub fn start(to: SocketAddr, certificate: &Path, key: &Path) -> Tcps {
        let certificate = CertificateDer::from_pem_file(certificate).unwrap();
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (end, ends) = oneshot::channel();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, acceptor, to, ends));
        });
        Tcps { port, end: Some(end), thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Tcps {
    fn drop(&mut self) {
        drop(self.end.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, to: SocketAddr, ends: Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Who speaks no TLS, or trusts no such certificate, is not handed on.
                let Ok(mut inside) = acceptor.accept(stream).await else { return };
                let Ok(mut listener) = TcpStream::connect(to).await else { return };
                let _ = copy_bidirectional(&mut inside, &mut listener).await;
            });
        }
    };
    let accepting = std::pin::pin!(accepting);
    let _ = futures_util::future::select(ends, accepting).await;
}
