//! Loads with several targets: what is sent, how often, and how the responses are checked.

use std::collections::BTreeMap;

use loadgen::plan::{RequestPlan, ResponseCheck, WeightedRequest, Wire};
use loadgen::{LoadPlan, LoadReport, Outcome, StopToken, run};

use crate::support::{SECOND, assert_consistent, constant_rate, lock_host};
use crate::witness::{WitnessServer, response};

const HELLO_SHA256: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

pub fn request(line: &str) -> RequestPlan {
    let (method, url) = line.split_once(' ').unwrap();
    RequestPlan {
        name: None,
        method: method.to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body_base64: None,
        check: None,
    }
}

fn weighted(weight: f64, request: RequestPlan) -> WeightedRequest {
    WeightedRequest { request, weight }
}

fn run_plan(plan: &LoadPlan) -> LoadReport {
    let report = run(plan, &StopToken::new()).expect("a plan that can be carried out");
    assert_consistent(&report);

    let targets: u64 = report.targets.iter().map(|target| target.scheduled).sum();
    assert_eq!(
        targets,
        report.scheduled(),
        "the requests of the targets add up"
    );

    report
}

#[test]
fn each_request_is_sent_unchanged_and_as_often_as_its_weight() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(|received| match received.line.as_str() {
            "GET /missing" => response(404, "", "no"),
            _ => response(200, "", "yes"),
        });
        let order = RequestPlan {
            name: Some("order".to_owned()),
            headers: vec![("X-Kind".to_owned(), "own".to_owned())],
            body_base64: Some("e30=".to_owned()),
            ..request("POST /orders?a=b")
        };
        let plan = LoadPlan {
            wire,
            headers: vec![
                ("X-Kind".to_owned(), "all".to_owned()),
                ("X-Token".to_owned(), "t".to_owned()),
            ],
            targets: vec![
                weighted(6.0, request(&format!("GET {}index", server.url()))),
                weighted(3.0, order),
                weighted(1.0, request("GET /missing")),
            ],
            ..constant_rate(&server.url(), 1_000.0, SECOND)
        };
        let report = run_plan(&plan);
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for received in server.requests() {
            *lines.entry(received.line.clone()).or_default() += 1;
            let (kind, body) = if received.line.starts_with("POST") {
                ("own", "{}")
            } else {
                ("all", "")
            };
            assert_eq!(
                (
                    received.fields("x-kind"),
                    received.fields("x-token"),
                    received.body.as_str()
                ),
                (vec![kind], vec!["t"], body)
            );
        }
        let sent = |line: &str| lines[line];
        let (index, orders, missing) = (
            sent("GET /index"),
            sent("POST /orders?a=b"),
            sent("GET /missing"),
        );
        assert_eq!((lines.len(), index + orders + missing), (3, 1_000));
        // Four standard deviations of the counts among 1,000 draws: 62, 58 and 38.
        assert!(
            index.abs_diff(600) < 62 && orders.abs_diff(300) < 58 && missing.abs_diff(100) < 38,
            "{lines:?}"
        );

        let reported: Vec<_> = report
            .targets
            .iter()
            .map(|target| (target.name.as_str(), target.scheduled, target.ok))
            .collect();
        let index_name = format!("GET {}index", server.url());
        assert_eq!(
            reported,
            [
                (index_name.as_str(), index, index),
                ("order", orders, orders),
                ("GET /missing", missing, 0)
            ]
        );
        assert_eq!(
            (report.targets[2].failed, report.targets[2].p50_ns),
            (missing, None)
        );
        assert!(
            report.targets[0].p50_ns.is_some()
                && report.targets[0].p50_ns <= report.targets[0].max_ns
        );
        assert_eq!(report.outcome(Outcome::HttpStatus), missing);
    }
}

#[test]
fn the_same_requests_are_sent_by_any_number_of_threads() {
    let _host = lock_host();
    let counts = [1, 3].map(|threads| {
        let server = WitnessServer::start(|_| response(200, "", "yes"));
        let targets = (1..=5)
            .map(|place| weighted(f64::from(place), request(&format!("GET /{place}"))))
            .collect();
        let plan = LoadPlan {
            threads,
            targets,
            seed: 11,
            ..LoadPlan::open(&server.url(), 500.0, SECOND)
        };

        run_plan(&plan)
            .targets
            .iter()
            .map(|target| target.scheduled)
            .collect::<Vec<_>>()
    });

    assert_eq!(counts[0], counts[1]);
}

#[test]
fn users_of_a_closed_loop_choose_targets_by_weight() {
    let _host = lock_host();
    let server = WitnessServer::start(|_| response(200, "", "yes"));
    let targets = vec![
        weighted(1.0, request("GET /a")),
        weighted(3.0, request("GET /b")),
    ];
    let report = run_plan(&LoadPlan {
        targets,
        ..LoadPlan::closed(&server.url(), 2, SECOND / 4)
    });
    let (first, all) = (
        report.targets[0].scheduled as f64,
        report.scheduled() as f64,
    );

    assert!(
        (first - all / 4.0).abs() < 5.0 * (all * 3.0 / 16.0).sqrt(),
        "{first} of {all}"
    );
}

#[test]
fn every_kind_of_check_detects_the_incorrect_body() {
    let _host = lock_host();
    // The body is sent in two chunks.
    let body = |line: &str| {
        if line.ends_with("/incorrect") {
            ["hel", "la"]
        } else {
            ["hel", "lo"]
        }
    };
    let server = WitnessServer::start(move |received| {
        let [first, second] = body(&received.line);
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: \
            chunked\r\n\r\n3\r\n{first}\r\n2\r\n{second}\r\n0\r\n\r\n"
        )
    });
    let any = ResponseCheck::default();
    let checks = [
        (
            ResponseCheck {
                sha256: Some(HELLO_SHA256.to_owned()),
                ..any.clone()
            },
            true,
        ),
        (
            ResponseCheck {
                sha256: Some(HELLO_SHA256.to_uppercase()),
                ..any.clone()
            },
            true,
        ),
        (
            ResponseCheck {
                regex: Some("^h.*o$".to_owned()),
                ..any.clone()
            },
            true,
        ),
        (
            ResponseCheck {
                length: Some(5),
                ..any.clone()
            },
            false,
        ),
        (
            ResponseCheck {
                length: Some(6),
                ..any.clone()
            },
            true,
        ),
        (any, false),
    ];

    for wire in [Wire::Native, Wire::Hyper] {
        for (check, detects) in &checks {
            let targets = vec![
                weighted(1.0, request("GET /correct")),
                weighted(1.0, request("GET /incorrect")),
            ];
            let check = check.clone();
            let all_incorrect = check.length == Some(6);
            let plan = LoadPlan {
                wire,
                targets,
                check: check.clone(),
                ..constant_rate(&server.url(), 1_000.0, SECOND / 10)
            };
            let report = run_plan(&plan);
            let (correct, incorrect) = (&report.targets[0], &report.targets[1]);

            assert!(correct.scheduled > 20 && incorrect.scheduled > 20);

            let expected = (
                if all_incorrect { correct.scheduled } else { 0 },
                if *detects { incorrect.scheduled } else { 0 },
            );
            assert_eq!(
                (correct.failed, incorrect.failed),
                expected,
                "{check:?} over {wire:?}"
            );
            assert_eq!(report.outcome(Outcome::BadBody), expected.0 + expected.1);
        }
    }
}

#[test]
fn a_request_may_have_its_own_check() {
    let _host = lock_host();
    let server = WitnessServer::start(|received| {
        response(
            if received.line == "GET /created" {
                201
            } else {
                200
            },
            "",
            "yes",
        )
    });
    let created = ResponseCheck {
        statuses: vec![201],
        regex: Some("^yes$".to_owned()),
        ..ResponseCheck::default()
    };
    let targets = vec![
        weighted(
            1.0,
            RequestPlan {
                check: Some(created),
                ..request("GET /created")
            },
        ),
        weighted(1.0, request("GET /other")),
    ];
    let report = run_plan(&LoadPlan {
        targets,
        ..constant_rate(&server.url(), 500.0, SECOND / 5)
    });

    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
}

#[test]
fn invalid_requests_are_refused_by_name() {
    let mut plan = LoadPlan::open("http://127.0.0.1:1/", 1.0, SECOND);
    for (line, word) in [
        ("GET http://elsewhere/", "127.0.0.1:1"),
        ("GET https://127.0.0.1:1/", "begin with http://"),
        ("G(T /", "token"),
        ("GET /a\tb", "url"),
    ] {
        plan.targets = vec![
            weighted(1.0, request("GET /")),
            weighted(1.0, request(line)),
        ];
        let message = run(&plan, &StopToken::new()).expect_err(line).to_string();
        assert!(
            message.contains(&format!("request {line}: ")) && message.contains(word),
            "{message}"
        );
    }
}
