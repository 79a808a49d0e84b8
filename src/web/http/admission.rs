//! Which requests the pages admit: those with the token, for this host, and from no foreign page.

use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use milepost_core::base::digest::Digest;
use std::net::SocketAddr;

/// The start of the path of every page.
pub(in crate::web) const PREFIX: &str = "/ui/";

/// Returns the rest of a path after its token, such as `batch` for `/ui/TOKEN/batch`; `None` if the path has another token or none.
pub(super) fn after_token<'a>(path: &'a str, token: &Digest) -> Option<&'a str> {
    let rest = path.strip_prefix(PREFIX)?;
    let (given, rest) = rest.split_once('/')?;
    is_same(token, &Digest::of(given)).then_some(rest)
}

/// Compares in a time that does not depend on the digests.
fn is_same(one: &Digest, other: &Digest) -> bool {
    let (one, other) = (one.hex(), other.hex());
    let pairs = one.bytes().zip(other.bytes());
    pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Checks a request before its body is read.
///
/// # Errors
/// The status and the reason, if it is refused.
pub(super) fn admit(
    parts: &Parts,
    token: &Digest,
    address: SocketAddr,
) -> Result<(), (StatusCode, &'static str)> {
    let header = |name| match parts.headers.get(name) {
        Some(value) => Some(value.to_str().unwrap_or("not a text")),
        None => None,
    };
    // A name of another site that resolves to this machine would have another host.
    if !header(HOST).is_some_and(|host| is_own_host(host, address)) {
        return Err((
            StatusCode::MISDIRECTED_REQUEST,
            "the header `Host` names another server; open the URL that `milepost ui` printed",
        ));
    }
    if after_token(parts.uri.path(), token).is_none() {
        return Err((
            StatusCode::UNAUTHORIZED,
            "the URL has no valid token; open the URL that `milepost ui` printed when it started",
        ));
    }
    let origin = header(ORIGIN);
    let is_foreign = origin.is_some_and(|origin| {
        let host = origin.strip_prefix("http://");
        !host.is_some_and(|host| is_own_host(host, address))
    });
    let changes = parts.method == Method::POST;
    if is_foreign || (changes && origin.is_none()) {
        return Err((
            StatusCode::FORBIDDEN,
            "the request comes from a page of another site",
        ));
    }
    if !changes && parts.method != Method::GET && parts.method != Method::HEAD {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "pages answer GET, and forms POST",
        ));
    }
    Ok(())
}

/// Returns true for the names of the address that the server listens at. At all addresses, a numeric one is right: only a name can be
/// made to resolve to another machine.
fn is_own_host(host: &str, address: SocketAddr) -> bool {
    let (ip, port) = (address.ip(), address.port());
    let is_own = |host: &str| match host.parse::<SocketAddr>() {
        Ok(given) => given == address || (ip.is_unspecified() && given.port() == port),
        Err(_) => (ip.is_loopback() || ip.is_unspecified()) && host == format!("localhost:{port}"),
    };
    // A browser leaves out the port 80.
    is_own(host) || (port == 80 && is_own(&format!("{host}:80")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    const TOKEN: &str = "0123456789abcdef";

    fn admitted(method: Method, path: &str, headers: &[(&str, &str)]) -> Result<(), u16> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let address = "127.0.0.1:8080".parse().unwrap();
        admit(&parts, &Digest::of(TOKEN), address).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_a_request_with_token_and_own_host_and_origin_is_admitted() {
        let page = format!("/ui/{TOKEN}/batch");
        let host = ("host", "127.0.0.1:8080");
        let own = ("origin", "http://127.0.0.1:8080");
        let of = |headers: &[(&str, &str)]| admitted(Method::GET, &page, headers);
        assert_eq!(of(&[host]), Ok(()));
        assert_eq!(of(&[("host", "localhost:8080")]), Ok(()));
        assert_eq!(of(&[host, own]), Ok(()));
        assert_eq!(of(&[]), Err(421));
        for foreign in [
            "evil.example:8080",
            "127.0.0.1:8081",
            "127.0.0.1",
            "localhost",
            "\u{e9}",
        ] {
            assert_eq!(of(&[("host", foreign)]), Err(421), "{foreign}");
        }
        for foreign in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:8080",
            "http://127.0.0.1:8081",
        ] {
            assert_eq!(of(&[host, ("origin", foreign)]), Err(403), "{foreign}");
        }
        for path in [
            "/ui/",
            "/ui/x/batch",
            "/ui//batch",
            "/ui/0123456789abcdef",
            "/ui/../batch",
        ] {
            assert_eq!(admitted(Method::GET, path, &[host]), Err(401), "{path}");
        }
        assert_eq!(admitted(Method::POST, &page, &[host, own]), Ok(()));
        assert_eq!(admitted(Method::POST, &page, &[host]), Err(403));
        assert_eq!(admitted(Method::PUT, &page, &[host, own]), Err(405));
    }

    #[test]
    fn a_browser_leaves_out_port_80() {
        for (host, address, is_own) in [
            ("127.0.0.1", "127.0.0.1:80", true),
            ("localhost", "127.0.0.1:80", true),
            ("[::1]", "[::1]:80", true),
            ("[::1]:80", "[::1]:80", true),
            ("localhost", "[::1]:80", true),
            ("192.168.1.7", "0.0.0.0:80", true),
            ("evil.example", "127.0.0.1:80", false),
            ("evil.example", "0.0.0.0:80", false),
            ("127.0.0.2", "127.0.0.1:80", false),
            ("::1", "[::1]:80", false),
            ("192.168.1.7", "0.0.0.0:8080", false),
            ("[::1]", "[::1]:8080", false),
        ] {
            assert_eq!(
                is_own_host(host, address.parse().unwrap()),
                is_own,
                "{host} {address}"
            );
        }
    }

    #[test]
    fn every_interface_takes_numeric_hosts_only() {
        let address = "0.0.0.0:8080".parse().unwrap();
        assert!(is_own_host("192.168.1.7:8080", address));
        assert!(is_own_host("localhost:8080", address));
        assert!(!is_own_host("evil.example:8080", address));
        assert!(!is_own_host("192.168.1.7:80", address));
    }
}
