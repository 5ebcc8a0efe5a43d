//! TLS: loads over TLS are measured like others, and TLS errors are explained.

use std::io::Write as _;

use loadgen::plan::{Keepalive, ResponseCheck, TlsOptions, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::byte_servers::{ThreadedServer, read_request};
use crate::support::{SECOND, assert_consistent, capped, lock_host};
use crate::tls_server::{
    BodyEnd, Certificate, https_server, https_server_for_client, https_server_until_close,
    https_server_with_slow_handshake,
};

const WIRES: [Wire; 2] = [Wire::Native, Wire::Hyper];

/// Runs fifty requests over one connection at a time.
fn run_fifty(
    server: &ThreadedServer,
    tls: TlsOptions,
    change: impl FnOnce(LoadPlan) -> LoadPlan,
) -> LoadReport {
    let url = format!("https://127.0.0.1:{}/", server.address.port());
    let plan = change(LoadPlan {
        tls,
        ..capped(&url, 100.0, SECOND / 2, 1)
    });
    let report = run(&plan, &StopToken::new()).unwrap();

    assert_consistent(&report);
    assert_eq!(report.scheduled(), 50);

    report
}

/// Asserts that all requests have this outcome.
fn assert_all(report: &LoadReport, outcome: Outcome) {
    assert_eq!(
        report.outcome(outcome),
        50,
        "{:?} {:?}",
        report.outcomes,
        report.connections.failures
    );
}

/// The cause of the failed connections, the same for all.
fn only_cause(report: &LoadReport) -> &str {
    let failures = &report.connections.failures;
    assert_eq!(
        (failures.len(), failures.values().sum::<u64>()),
        (1, 50),
        "{failures:?}"
    );
    failures.keys().next().unwrap()
}

#[test]
fn with_keep_alive_one_tls_connection_carries_every_request() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for wire in WIRES {
        let server = https_server(&certificate, b"hello".to_vec());
        let report = run_fifty(&server, certificate.trusting_options(), |plan| LoadPlan {
            wire,
            ..plan
        });
        assert_all(&report, Outcome::Ok);
        assert_eq!((report.connections.opened, server.connections()), (1, 1));
        assert!(report.connections.failures.is_empty());
    }
}

#[test]
fn the_host_name_in_the_url_is_verified_even_with_another_address() {
    let _host = lock_host();
    for (name, outcome) in [
        ("shop.invalid", Outcome::Ok),
        ("other.invalid", Outcome::Reset),
    ] {
        let certificate = Certificate::for_names(&[name]);
        let server = https_server(&certificate, b"hello".to_vec());
        let change = |plan| LoadPlan {
            url: "https://shop.invalid/".to_owned(),
            connect_to: Some(server.address.to_string()),
            ..plan
        };
        assert_all(
            &run_fifty(&server, certificate.trusting_options(), change),
            outcome,
        );
    }
}

#[test]
fn without_keep_alive_every_request_has_its_own_handshake() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for wire in WIRES {
        let server = https_server(&certificate, b"hello".to_vec());
        let change = |plan| LoadPlan {
            wire,
            keepalive: Keepalive::Off,
            ..plan
        };
        let report = run_fifty(&server, certificate.trusting_options(), change);

        assert_all(&report, Outcome::Ok);
        assert_eq!((report.connections.opened, server.connections()), (50, 50));
        assert_eq!(report.measures().connect.count(), 50);
    }
}

#[test]
fn the_handshake_is_part_of_connecting() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for wire in WIRES {
        let server = https_server_with_slow_handshake(&certificate, SECOND / 50);
        let change = |plan| LoadPlan {
            wire,
            keepalive: Keepalive::Requests(25),
            ..plan
        };
        let report = run_fifty(&server, certificate.trusting_options(), change);

        assert_all(&report, Outcome::Ok);

        let measures = report.measures();
        assert_eq!(measures.connect.count(), 2);
        assert!(
            measures.connect.min_ns() >= Some(SECOND / 50),
            "{:?}",
            measures.connect.min_ns()
        );
        assert!(
            measures.service.min_ns() < Some(SECOND / 50),
            "{:?}",
            measures.service.min_ns()
        );
    }
}

#[test]
fn bodies_of_many_tls_records_arrive_intact_in_both_directions() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let body: Vec<u8> = (0..700_000_u32).map(|index| (index % 251) as u8).collect();
    let check = ResponseCheck {
        body_base64: Some(base64(&body)),
        ..ResponseCheck::default()
    };

    for wire in WIRES {
        let server = https_server(&certificate, body.clone());
        let report = run_fifty(&server, certificate.trusting_options(), |plan| LoadPlan {
            wire,
            method: "POST".to_owned(),
            body_base64: Some(base64(&body)),
            check: check.clone(),
            ..plan
        });

        assert_all(&report, Outcome::Ok);
        assert_eq!(report.connections.opened, 1);
    }
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_certificate_for_another_name_is_explained() {
    let _host = lock_host();
    let other_name = Certificate::for_names(&["example.org"]);
    let server = https_server(&other_name, b"hello".to_vec());
    let report = run_fifty(&server, other_name.trusting_options(), |plan| plan);
    assert_all(&report, Outcome::Reset);

    let cause = only_cause(&report);
    assert!(
        cause.starts_with("TLS certificate: ")
            && cause.contains("example.org")
            && cause.contains("use that name in the URL"),
        "{cause}"
    );
    assert!(!cause.contains("--ca-file"), "{cause}");
}

#[test]
fn an_untrusted_certificate_is_refused_unless_insecure() {
    let _host = lock_host();
    let (certificate, other_certificate) = (
        Certificate::for_names(&["127.0.0.1"]),
        Certificate::for_names(&["127.0.0.1"]),
    );
    for wire in WIRES {
        let server = https_server(&certificate, b"hello".to_vec());
        let report = run_fifty(&server, other_certificate.trusting_options(), |plan| {
            LoadPlan { wire, ..plan }
        });
        assert_all(&report, Outcome::Reset);
        let cause = only_cause(&report);
        assert!(
            cause.contains("certificate") && cause.contains("--ca-file"),
            "{cause}"
        );

        let insecure = TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        };
        assert_all(
            &run_fifty(&server, insecure, |plan| LoadPlan { wire, ..plan }),
            Outcome::Ok,
        );
    }
}

/// A self-signed CA certificate, like those of `openssl req -x509`.
fn self_signed_authority(name: &str) -> Certificate {
    Certificate::with(&[name], |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    })
}

#[test]
fn a_self_signed_certificate_is_trusted_if_it_is_in_the_ca_file() {
    let _host = lock_host();
    let (certificate, other_certificate) = (
        self_signed_authority("127.0.0.1"),
        self_signed_authority("127.0.0.1"),
    );
    for wire in WIRES {
        let server = https_server(&certificate, b"hello".to_vec());
        let change = |plan| LoadPlan { wire, ..plan };
        assert_all(
            &run_fifty(&server, certificate.trusting_options(), change),
            Outcome::Ok,
        );

        let report = run_fifty(&server, other_certificate.trusting_options(), change);
        assert_all(&report, Outcome::Reset);
        assert!(
            only_cause(&report).contains("--ca-file"),
            "{}",
            only_cause(&report)
        );
    }

    let elsewhere = self_signed_authority("elsewhere.example");
    let server = https_server(&elsewhere, b"hello".to_vec());
    let report = run_fifty(&server, elsewhere.trusting_options(), |plan| plan);
    assert_all(&report, Outcome::Reset);
    assert!(
        only_cause(&report).contains("elsewhere.example"),
        "{}",
        only_cause(&report)
    );
}

#[test]
fn an_expired_certificate_is_explained() {
    let _host = lock_host();
    for is_authority in [false, true] {
        let expired = Certificate::with(&["127.0.0.1"], |params| {
            params.not_before = rcgen::date_time_ymd(2019, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            if is_authority {
                params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            }
        });
        let server = https_server(&expired, b"hello".to_vec());
        let report = run_fifty(&server, expired.trusting_options(), |plan| plan);

        assert_all(&report, Outcome::Reset);

        let cause = only_cause(&report);
        assert!(
            cause.contains("has expired") && cause.contains("renew it"),
            "{cause}"
        );
    }
}

#[test]
fn a_certificate_that_is_not_valid_yet_is_explained() {
    let _host = lock_host();
    let early = Certificate::with(&["127.0.0.1"], |params| {
        params.not_before = rcgen::date_time_ymd(2190, 1, 1);
        params.not_after = rcgen::date_time_ymd(2200, 1, 1);
    });
    let server = https_server(&early, b"hello".to_vec());
    let report = run_fifty(&server, early.trusting_options(), |plan| plan);

    assert_all(&report, Outcome::Reset);
    assert!(
        only_cause(&report).contains("is not valid yet"),
        "{}",
        only_cause(&report)
    );
}

#[test]
fn a_refused_handshake_is_explained() {
    let _host = lock_host();
    let trusted = Certificate::for_names(&["127.0.0.1"]);
    for (description, explanation) in [
        (70, "TLS protocol: the server shares no TLS version"),
        (40, "TLS handshake: the server refused it"),
        (
            48,
            "TLS certificate: the server refused the client certificate",
        ),
        (116, "it requires a trusted client certificate"),
    ] {
        let server = ThreadedServer::start(move |mut stream, _| {
            let _ = std::io::Read::read(&mut stream, &mut [0; 16 * 1024]);
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, description]);
        });
        let report = run_fifty(&server, trusted.trusting_options(), |plan| plan);
        assert_all(&report, Outcome::Reset);
        assert!(
            only_cause(&report).contains(explanation),
            "{}",
            only_cause(&report)
        );
    }
}

#[test]
fn a_trusted_certificate_for_another_name_is_refused() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["elsewhere.example"]);
    let server = https_server(&certificate, b"hello".to_vec());
    let report = run_fifty(&server, certificate.trusting_options(), |plan| plan);
    assert_all(&report, Outcome::Reset);
    assert!(
        only_cause(&report).contains("name"),
        "{}",
        only_cause(&report)
    );
}

#[test]
fn a_close_delimited_body_is_correct_only_with_close_notify() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    for wire in WIRES {
        for (end, outcome) in [
            (BodyEnd::CloseNotify, Outcome::Ok),
            (BodyEnd::ConnectionClose, Outcome::Reset),
        ] {
            let server = https_server_until_close(&certificate, end);
            let report = run_fifty(&server, certificate.trusting_options(), |plan| LoadPlan {
                wire,
                ..plan
            });
            assert_all(&report, outcome);
            assert_eq!(
                (
                    report.connections.opened,
                    report.connections.closed_by_server
                ),
                (50, 50)
            );
        }
    }
}

#[test]
fn an_aborted_handshake_and_a_server_without_tls_are_distinguished() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    // If the server has read the whole ClientHello, the connection ends with a FIN, otherwise with
    // a reset.
    for max_bytes in [16 * 1024, 1] {
        let breaking = ThreadedServer::start(move |mut stream, _| {
            let _ = std::io::Read::read(&mut stream, &mut vec![0; max_bytes]);
        });
        let report = run_fifty(&breaking, certificate.trusting_options(), |plan| plan);
        assert_all(&report, Outcome::Reset);
        assert!(
            only_cause(&report).starts_with("TLS handshake: "),
            "{}",
            only_cause(&report)
        );
    }

    let plain = ThreadedServer::start(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        read_request(&mut stream);
    });
    let report = run_fifty(&plain, certificate.trusting_options(), |plan| plan);
    assert_all(&report, Outcome::Reset);
    assert!(
        only_cause(&report).starts_with("TLS protocol: the server does not speak TLS"),
        "{}",
        only_cause(&report)
    );
    assert_eq!(report.connections.opened, 0);
}

#[test]
fn a_server_that_never_completes_the_handshake_causes_a_connect_timeout() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let silent = ThreadedServer::start(|mut stream, _| {
        drop(std::io::copy(&mut stream, &mut std::io::sink()))
    });
    let change = |plan| LoadPlan {
        timeout_ns: SECOND / 100,
        ..plan
    };

    assert_all(
        &run_fifty(&silent, certificate.trusting_options(), change),
        Outcome::ConnectTimeout,
    );
}

#[test]
fn a_ca_file_without_certificates_is_refused_before_the_load() {
    for (path, cause) in [
        ("/nowhere/authority.pem", "No such file"),
        ("/dev/null", "not a file"),
    ] {
        let tls = TlsOptions {
            ca_file: Some(path.to_owned()),
            ..TlsOptions::default()
        };
        let plan = LoadPlan {
            tls,
            ..LoadPlan::open("https://127.0.0.1:9/", 1.0, SECOND)
        };
        let error = run(&plan, &StopToken::new()).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains(cause), "{error}");
    }
}

#[test]
fn a_server_accepts_only_the_client_certificate_that_it_trusts() {
    let _host = lock_host();
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let (known, unknown) = (
        Certificate::for_names(&["client"]),
        Certificate::for_names(&["client"]),
    );
    let file = known.ca_file.with_extension("with-key.pem");

    for (client, accepted) in [(&known, 50), (&unknown, 0)] {
        std::fs::write(&file, client.pem_with_key()).unwrap();
        for insecure in [false, true] {
            let server = https_server_for_client(&certificate, &known);
            let tls = TlsOptions {
                insecure,
                client_cert: Some(file.display().to_string()),
                ..certificate.trusting_options()
            };
            let report = run_fifty(&server, tls, |plan| plan);
            let causes = &report.connections.failures;

            let details = format!("{:?} {causes:?}", report.outcomes);
            assert_eq!(report.outcome(Outcome::Ok), accepted, "{details}");

            let is_named = causes.keys().any(|cause| cause.contains("certificate"));
            assert_eq!(is_named, accepted == 0, "{details}");
        }
    }

    std::fs::remove_file(&file).unwrap();
}

#[test]
fn an_unusable_client_certificate_is_refused_before_the_load() {
    let certificate = Certificate::for_names(&["127.0.0.1"]);
    let without_key = certificate.ca_file.display().to_string();
    for (client_cert, client_key, cause) in [
        (Some(without_key.as_str()), None, "no items found"),
        (Some("/nowhere/client.pem"), None, "/nowhere/client.pem"),
        (
            Some(without_key.as_str()),
            Some("/nowhere/client.key"),
            "/nowhere/client.key",
        ),
        (None, Some("client.key"), "--client-cert FILE"),
    ] {
        let tls = TlsOptions {
            client_cert: client_cert.map(str::to_owned),
            client_key: client_key.map(str::to_owned),
            ..certificate.trusting_options()
        };
        let plan = LoadPlan {
            tls,
            ..LoadPlan::open("https://127.0.0.1:9/", 1.0, SECOND)
        };
        let error = run(&plan, &StopToken::new()).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
}
