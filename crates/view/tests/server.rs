//! Access control of the viewer's server, and rejected requests; the next request is answered in any case.

mod common;

use common::{ask, ask_with, send, small, viewer_of};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use taskscope_session::Session;
use taskscope_view::page::{NoteFile, Page};
use taskscope_view::server::Viewer;

#[test]
fn a_request_without_the_token_is_refused() {
    let (_, viewer) = viewer_of(small());
    let host = format!("127.0.0.1:{}", viewer.port());
    for target in ["/api/overview", "/api/rows?level=9&first=0&count=9", "/api/notes", "/nowhere"] {
        assert_eq!(ask_with(&viewer, target, &[("Host", &host)]).status, 401, "{target}");
        let wrong = "0".repeat(32);
        for token in ["", "x", wrong.as_str(), &viewer.token()[..31]] {
            let headers = [("Host", host.as_str()), ("X-Taskscope-Token", token)];
            assert_eq!(ask_with(&viewer, target, &headers).status, 401, "{target} with {token}");
        }
    }
    // A link alone gives no access to data: the page's address opens the page alone.
    let with_query = format!("/api/overview?token={}", viewer.token());
    assert_eq!(ask_with(&viewer, &with_query, &[("Host", &host)]).status, 401);
    let page = ask_with(&viewer, &format!("/?token={}", viewer.token()), &[("Host", &host)]);
    assert_eq!(page.status, 200);
    assert!(
        page.head.to_lowercase().contains("content-security-policy: default-src 'none'"),
        "{}",
        page.head
    );
    assert_eq!(ask(&viewer, "/api/overview").status, 200);
    // Without it the page has no data, and asks for it.
    let open = ask_with(&viewer, "/", &[("Host", &host)]);
    assert_eq!((open.status, &open.body), (200, &page.body));
    assert!(!String::from_utf8_lossy(&open.body).contains("small.trace"));
}

#[test]
fn notes_are_kept_beside_the_trace_and_changed_with_the_token_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("x.trace");
    std::fs::create_dir(&root).unwrap();
    let page = Arc::new(Page::analysed(Session::in_memory(&root, small())));
    let viewer = Viewer::start(page, 0).unwrap();
    let host = format!("127.0.0.1:{}", viewer.port());
    let change = |method: &str, target: &str, token: &str, body: &str| {
        let (length, line) = (body.len(), format!("X-Taskscope-Token: {token}\r\n"));
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{line}Content-Length: {length}\r\n");
        send(&viewer, format!("{head}Connection: close\r\n\r\n{body}").as_bytes())
    };
    let note = |id: &str, from: u64, text: &str| json!({ "id": id, "run": "1.2", "from_ns": from, "to_ns": 90, "text": text });
    let file = |notes: &[Value]| json!({ "notes": notes }).to_string();
    let token = viewer.token();
    let two = file(&[note("b", 20, "later"), note("a", 10, "first")]);
    for wrong in ["", "0123"] {
        assert_eq!(change("PUT", "/api/notes", wrong, &two).status, 401);
        assert_eq!(change("DELETE", "/api/notes?id=a", wrong, "").status, 401);
    }
    let with_query = format!("/api/notes?token={token}");
    assert_eq!(change("PUT", &with_query, "", &two).status, 401, "a link alone changes nothing");
    assert_eq!(change("POST", "/api/notes", token, &two).status, 405);
    let far = note("c", 91, "ends before it begins");
    let long = note("c", 1, &"x".repeat(5000));
    let mut astray = note("c", 1, "leads elsewhere");
    astray["view"] = "/after/".into();
    let no_word = note("../c", 1, "no word");
    for wrong in ["", "{}", "[]", &file(&[far]), &file(&[long]), &file(&[no_word]), &file(&[astray])] {
        assert_eq!(change("PUT", "/api/notes", token, wrong).status, 400, "{wrong}");
    }
    let huge = format!("{{\"notes\":[],\"x\":\"{}\"}}", "x".repeat(5 << 20));
    assert!([0, 413].contains(&change("PUT", "/api/notes", token, &huge).status));
    let stored = folder.path().join("x.trace.notes.json");
    assert!(!stored.exists());
    let texts = |answer: &[u8]| {
        let file: NoteFile = serde_json::from_slice(answer).unwrap();
        file.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&change("PUT", "/api/notes", token, &two).body), ["first", "later"]);
    assert_eq!(texts(&std::fs::read(&stored).unwrap()), ["first", "later"]);
    let again = file(&[note("a", 30, "moved")]);
    assert_eq!(texts(&change("PUT", "/api/notes", token, &again).body), ["later", "moved"]);
    assert_eq!(texts(&change("DELETE", "/api/notes?id=b", token, "").body), ["moved"]);
    assert_eq!(texts(&ask(&viewer, "/api/notes").body), ["moved"]);
    std::fs::write(&stored, "no notes").unwrap();
    let damaged = change("PUT", "/api/notes", token, &two);
    assert_eq!(damaged.status, 500);
    assert!(String::from_utf8_lossy(&damaged.body).contains("x.trace.notes.json"));
    assert_eq!(std::fs::read(&stored).unwrap(), b"no notes", "what is not understood is not replaced");
}

#[test]
fn a_foreign_host_or_origin_is_refused() {
    let (_, viewer) = viewer_of(small());
    let token = ("X-Taskscope-Token", viewer.token());
    for host in ["evil.example", "127.0.0.1.evil.example", "192.168.1.1:80", "", "localhost.evil.example:80"]
    {
        assert_eq!(ask_with(&viewer, "/api/overview", &[("Host", host), token]).status, 421, "{host}");
    }
    let own = format!("127.0.0.1:{}", viewer.port());
    let two = [("Host", own.as_str()), ("Host", "evil.example"), token];
    assert!([400, 421].contains(&ask_with(&viewer, "/api/overview", &two).status));
    for origin in ["http://evil.example", "null", "https://127.0.0.1"] {
        let headers = [("Host", own.as_str()), ("Origin", origin), token];
        assert_eq!(ask_with(&viewer, "/api/overview", &headers).status, 403, "{origin}");
    }
    // The near end of a tunnel has another port.
    assert_eq!(ask_with(&viewer, "/api/overview", &[("Host", "localhost:8000"), token]).status, 200);
}

#[test]
fn nothing_but_the_known_addresses_is_answered() {
    let (_, viewer) = viewer_of(small());
    for target in [
        "/../../etc/passwd",
        "/api/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/api//overview",
        "/api/overview/../../x",
        "/favicon.ico",
        "/api/",
        "/api/rows/0",
    ] {
        let answer = ask(&viewer, target);
        assert_eq!(answer.status, 404, "{target}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("root:"), "{target}");
    }
    let host = format!("127.0.0.1:{}", viewer.port());
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let request = format!(
            "{method} /api/overview HTTP/1.1\r\nHost: {host}\r\nX-Taskscope-Token: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            viewer.token()
        );
        assert_eq!(send(&viewer, request.as_bytes()).status, 405, "{method}");
    }
}

#[test]
fn malformed_and_oversized_requests_are_refused_and_the_server_continues() {
    let (_, viewer) = viewer_of(small());
    for query in [
        "rows",
        "rows?level=64&first=0&count=1",
        "rows?level=-1&first=0&count=1",
        "rows?level=1e3&first=0&count=1",
        "rows?level=10&first=0&count=0",
        "rows?level=10&first=0&count=99999999999",
        "rows?level=0&first=0&count=8388609",
        "rows?level=10&first=18446744073709551615&count=5",
        "rows?level=63&first=9999&count=5",
        "rows?level=10&first=0&count=10&tracks=8",
        "rows?level=10&first=0&count=10&tracks=5-2",
        "rows?level=10&first=0&count=10&tracks=0-4294967295",
        "rows?level=10&first=0&count=10&tracks=a,b",
        "rows?level=10&first=0&count=10&view=no",
        "rows?level=10&first=0&count=4000000&tracks=0-7",
        "stack?level=10&first=0&count=8000000",
        "counter?name=x&level=10&first=0&count=10",
        "section?track=99&at=5",
        "section?track=0&at=abc",
        "section?track=0&at=5&step=sideways",
        "task?task=x",
        "range?from=10&to=5",
        "report?from=10&to=10",
        "page?from=10&to=10",
        "range?from=&to=",
        "search?text=x&at=-1",
        "search?text=x&at=0&step=up",
        "rows?level=10&first=0&count=10&tracks=0-7,0-7,0-7,0-7",
    ] {
        let answer = ask(&viewer, &format!("/api/{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", String::from_utf8_lossy(&answer.body));
    }
    for query in ["task?task=4294967295", "task?task=99999999999"] {
        assert_eq!(ask(&viewer, &format!("/api/{query}")).status, 404, "{query}");
    }
    // Far away, but a question with an answer.
    assert_eq!(ask(&viewer, "/api/section?track=0&at=18446744073709551615").body, b"null");
    assert_eq!(ask(&viewer, "/api/range?from=0&to=18446744073709551615").status, 200);
    for (letters, status) in [(40_000, 200), (60_000, 414)] {
        let long = ask(&viewer, &format!("/api/search?at=0&text={}", "a".repeat(letters)));
        assert_eq!(long.status, status, "{letters}");
    }
    assert_eq!(ask(&viewer, "/api/search?at=0&text=%ff%fe%00").body, b"null");
    for junk in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\xff\xfe /api HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://evil.example/api/overview HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ] {
        let status = send(&viewer, junk).status;
        assert!(status == 0 || status >= 400, "{status}");
    }
    let mut huge = b"GET /api/overview HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec();
    huge.resize(3 << 20, b'a');
    let status = send(&viewer, &huge).status;
    assert!(status == 0 || status >= 400, "{status}");
    assert_eq!(ask(&viewer, "/api/overview").status, 200);
}

#[test]
fn it_listens_on_this_machine_only() {
    let (_, viewer) = viewer_of(small());
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{:04X}", viewer.port());
    let ours: Vec<&str> = listening
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|local| local.ends_with(&port))
        .collect();
    assert!(!ours.is_empty() && ours.iter().all(|local| local.starts_with("0100007F:")), "{ours:?}");
}

#[test]
fn slow_clients_are_dropped_and_delay_no_others() {
    let (_, viewer) = viewer_of(small());
    let mut slow: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", viewer.port())).unwrap()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /api/over").unwrap());
    assert_eq!(ask(&viewer, "/api/overview").status, 200);
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        // Closed, with a word or without.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert_eq!(ask(&viewer, "/api/overview").status, 200);
}
