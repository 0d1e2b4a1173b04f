//! Calls: names that change, deadlines, certificates.

use super::endpoint::{Endpoint, Say};
use crate::dns::Domains;
use crosstalk_api::outbound::{HttpCall, Outbound, OutboundError, Roots, Url};
use http::Method;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn outbound(names: &Arc<Domains>) -> Outbound {
    Outbound::new(Some(Arc::clone(names) as Arc<_>), Roots::system())
}

/// A name that leads elsewhere at the second look: there is no second look.
#[tokio::test]
async fn a_name_is_looked_up_once_and_what_was_checked_is_called() {
    let endpoint = Endpoint::start(|_, _| Say::ok()).await;
    let names = Domains::default().host("rebind.example", &[&["127.0.0.1"], &["127.66.66.66"]]);
    let names = Arc::new(names);
    let url = format!("http://rebind.example:{}/", endpoint.address.port());
    let call = HttpCall {
        allow_private: true,
        ..HttpCall::new(Method::POST, Url::parse(&url).unwrap())
    };
    assert_eq!(outbound(&names).call(call).await.unwrap().status, 200);
    assert_eq!((names.host_lookups(), endpoint.count()), (1, 1));
}

#[tokio::test]
async fn each_call_checks_anew() {
    let names = Domains::default().host(
        "rebind.example",
        &[&["1.1.1.1", "2606:4700::1111"], &["10.0.0.1"]],
    );
    let names = Arc::new(names);
    let url = Url::parse("https://rebind.example/").unwrap();
    let first = outbound(&names).addresses(&url, false).await.unwrap();
    assert_eq!(first.len(), 2);
    let second = outbound(&names).addresses(&url, false).await.unwrap_err();
    assert!(
        matches!(
            second,
            OutboundError::NotPublic {
                what: "private",
                ..
            }
        ),
        "{second}"
    );
    assert!(!second.is_temporary());
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let endpoint = Endpoint::start(|_, _| Say::Silence).await;
    let call = HttpCall {
        allow_private: true,
        within: Duration::from_millis(300),
        ..HttpCall::new(Method::POST, Url::parse(&endpoint.url()).unwrap())
    };
    let error = Outbound::new(None, Roots::system())
        .call(call)
        .await
        .unwrap_err();
    assert!(
        matches!(error, OutboundError::Late(_)) && error.is_temporary(),
        "{error}"
    );
}

#[tokio::test]
async fn unreachable_host_is_temporary_and_unknown_name_is_not() {
    let address = crosstalk_testing::loopback::silent();
    let names = Arc::new(Domains::default());
    for (url, temporary) in [
        (format!("http://{address}/"), true),
        ("http://no.example/".into(), false),
    ] {
        let call = HttpCall {
            allow_private: true,
            ..HttpCall::new(Method::GET, Url::parse(&url).unwrap())
        };
        let error = outbound(&names).call(call).await.unwrap_err();
        assert_eq!(error.is_temporary(), temporary, "{error}");
        assert!(error.is_unsent());
    }
}

/// A server with a certificate of its own: it is believed only where its certificate was added.
#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_to_fit() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args([
            "-subj",
            "/CN=relay.example",
            "-addext",
            "subjectAltName=DNS:relay.example",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-days",
            "3650",
        ])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let pem = std::fs::read(folder.path().join("certificate.pem")).unwrap();
    let key = std::fs::read(folder.path().join("key.pem")).unwrap();
    let address = tls_server(&pem, &key).await;
    let names = Domains::default()
        .host("relay.example", &[&["127.0.0.1"]])
        .host("other.example", &[&["127.0.0.1"]]);
    let names = Arc::new(names);
    let call = |host: &str| HttpCall {
        allow_private: true,
        ..HttpCall::new(
            Method::GET,
            Url::parse(&format!("https://{host}:{}/", address.port())).unwrap(),
        )
    };
    let trusting = Outbound::new(Some(Arc::clone(&names) as Arc<_>), Roots { extra: pem });
    assert_eq!(
        trusting.call(call("relay.example")).await.unwrap().status,
        204
    );
    for (outbound, host) in [
        (&trusting, "other.example"),
        (&outbound(&names), "relay.example"),
    ] {
        let error = outbound.call(call(host)).await.unwrap_err();
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}

async fn tls_server(certificate: &[u8], key: &[u8]) -> std::net::SocketAddr {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let chain = CertificateDer::pem_slice_iter(certificate);
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}
