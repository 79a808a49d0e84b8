//! Which requests are refused: without token, with a foreign host or origin, too long, for what is no page.

use super::server::{Reply, Ui};
use crate::support::Project;

#[test]
fn only_the_page_itself_can_ask() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let page = format!("{}/", ui.root);
    let status = |method: &str, path: &str, headers: &[(&str, &str)]| {
        let reply = Reply::read(ui.send(method, path, headers, ""));
        assert!(
            matches!(reply.status, 200 | 404 | 405) || !reply.body.contains("letters"),
            "{}",
            reply.body
        );
        reply.status
    };
    assert_eq!(status("GET", &page, &[]), 200);
    assert_eq!(status("GET", &page, &[("Origin", "")]), 200);
    assert_eq!(status("GET", "/ui/", &[]), 401);
    assert_eq!(status("GET", "/ui/0000000000000000/", &[]), 401);
    assert_eq!(status("GET", &page[..page.len() - 1], &[]), 401);
    assert_eq!(status("GET", &format!("/ui/../{page}"), &[]), 401);
    assert_eq!(status("POST", "/", &[]), 401);
    assert_eq!(status("GET", "/style.css", &[]), 401);
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1",
        "127.0.0.1:1",
        "",
    ] {
        let refused = status("GET", &page, &[("Host", host)]);
        assert!(refused == 421 || refused == 400, "{host}: {refused}");
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "file://",
    ] {
        assert_eq!(status("GET", &page, &[("Origin", origin)]), 403, "{origin}");
        assert_eq!(
            status("POST", &format!("{}/run", ui.root), &[("Origin", origin)]),
            403,
            "{origin}"
        );
    }
    assert_eq!(
        status("POST", &format!("{}/run", ui.root), &[("Origin", "")]),
        403
    );
    assert_eq!(status("DELETE", &page, &[]), 405);
    assert_eq!(status("GET", &format!("{}/run", ui.root), &[]), 405);
    assert_eq!(
        status("GET", &format!("{}/../style.css", ui.root), &[]),
        404
    );
    assert_eq!(
        status("GET", &format!("{}/%2e%2e/etc/passwd", ui.root), &[]),
        404
    );
    assert!(project.records().is_empty(), "nothing was run");
}

#[test]
fn a_body_of_100_mb_is_refused() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let path = format!("{}/run", ui.root);
    let reply = Reply::read(ui.send("POST", &path, &[], &"x".repeat(100 << 20)));
    // A client that only writes may get a reset before it reads the answer.
    assert!(reply.status == 413 || reply.status == 0, "{}", reply.head);
    assert_eq!(ui.get("").status, 200, "the server serves others");
}

#[test]
fn pages_are_protected_by_their_headers() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    for page in ["", "plan", "style.css", "live.js", "icon.svg", "nothing"] {
        let reply = ui.get(page);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "deny"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{page}");
        }
    }
    assert_eq!(ui.get("nothing").status, 404);
}

#[test]
fn two_servers_have_two_tokens_and_end_by_ctrl_c() {
    let project = Project::letters();
    let (one, other) = (Ui::start(&project), Ui::start(&project));
    assert_ne!(one.root, other.root);
    let crossed = format!("{}/", other.root);
    assert_eq!(Reply::read(one.send("GET", &crossed, &[], "")).status, 401);
    assert_eq!(one.end(), Some(0));
    assert_eq!(other.end(), Some(0));
}
