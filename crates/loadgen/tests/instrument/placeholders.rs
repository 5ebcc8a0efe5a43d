//! Placeholders: each request has its own values, whatever the number of threads.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{Keepalive, RequestPlan, WeightedRequest, Wire};
use loadgen::{LoadPlan, LoadReport, StopToken, run};

use crate::support::{SECOND, assert_consistent, constant_rate, lock_host};
use crate::targets::request;
use crate::witness::{ReceivedRequest, WitnessServer, response};

fn run_plan(plan: &LoadPlan) -> LoadReport {
    let report = run(plan, &StopToken::new()).expect("a plan that can be carried out");
    assert_consistent(&report);
    report
}

/// Request line, field `x-id` and body of each received request, unordered.
fn received_parts(server: &WitnessServer) -> BTreeSet<(String, String, String)> {
    let parts = |received: ReceivedRequest| {
        let field = received.fields("x-id").join(", ");
        (received.line, field, received.body)
    };
    server.requests().into_iter().map(parts).collect()
}

/// A mix of a request without placeholders and one with placeholders in all its parts.
fn mix(url: &str, threads: usize, seed: u64) -> LoadPlan {
    let order = RequestPlan {
        headers: vec![
            ("X-Id".to_owned(), "{{uuid}}".to_owned()),
            // A name that looks like the internal stand-in for a value.
            ("x-standin0x".to_owned(), "a value".to_owned()),
        ],
        body_base64: Some(STANDARD.encode("{\"n\":{{seq:1}},\"r\":{{random:1:1000000}}}")),
        ..request("POST /orders/{{seq:1}}?id={{uuid}}")
    };
    let weighted = |request| WeightedRequest {
        request,
        weight: 1.0,
    };

    LoadPlan {
        threads,
        seed,
        targets: vec![weighted(request("GET /")), weighted(order)],
        ..constant_rate(url, 400.0, SECOND / 2)
    }
}

#[test]
fn the_same_values_are_sent_by_any_number_of_threads_and_wires() {
    let _host = lock_host();
    let values = |threads, seed, wire| {
        let server = WitnessServer::start(|_| response(200, "", "yes"));
        let plan = LoadPlan {
            wire,
            ..mix(&server.url(), threads, seed)
        };
        let report = run_plan(&plan);
        assert_eq!(report.targets[1].name, "POST /orders/{{seq:1}}?id={{uuid}}");
        (received_parts(&server), report.targets[1].ok)
    };

    let (one, orders) = values(1, 5, Wire::Native);
    assert_eq!(one.len() as u64, orders + 1, "every order is different");
    for (line, field, body) in one.iter().filter(|(line, ..)| line != "GET /") {
        let (number, id) = line
            .strip_prefix("POST /orders/")
            .and_then(|rest| rest.split_once("?id="))
            .expect("a path with values");
        assert_eq!(field, id, "equal placeholders have equal values");
        assert!(
            body.starts_with(&format!("{{\"n\":{number},\"r\":")),
            "{body}"
        );
    }
    assert_eq!(one, values(3, 5, Wire::Native).0);
    assert_eq!(one, values(2, 5, Wire::Hyper).0);
    assert_ne!(one, values(1, 6, Wire::Native).0);
}

#[test]
fn a_closed_loop_numbers_its_requests_without_repetition() {
    let _host = lock_host();
    for keepalive in [Keepalive::On, Keepalive::Requests(2)] {
        let server = WitnessServer::start(|_| response(200, "", "yes"));
        let plan = LoadPlan {
            threads: 2,
            keepalive,
            ..LoadPlan::closed(&format!("{}{{{{seq:1}}}}", server.url()), 4, SECOND / 4)
        };
        let report = run_plan(&plan);
        let lines: BTreeSet<String> = server
            .requests()
            .into_iter()
            .map(|received| received.line)
            .collect();

        assert_eq!(lines.len(), server.requests().len(), "{keepalive:?}");
        assert!(lines.len() as u64 >= report.scheduled() && lines.contains("GET /1"));
        assert!(
            lines.contains("GET /2"),
            "both threads draw from one sequence"
        );
    }
}

#[test]
fn csv_rows_are_chosen_in_order_or_at_random_and_kept_for_a_session() {
    let _host = lock_host();
    let path = std::env::temp_dir().join(format!("loadgen-{}-users.csv", std::process::id()));
    std::fs::write(&path, "id,name\n1,ada b\n2,eve\n3,kim\n").unwrap();
    let table = path.to_str().unwrap();

    for (suffix, is_in_order) in [("", true), (":random", false)] {
        let server = WitnessServer::start(|_| response(200, "", "yes"));
        let line = format!("GET /{{{{csv:{table}:id{suffix}}}}}/{{{{csv:{table}:name{suffix}}}}}");
        let plan = LoadPlan {
            targets: vec![WeightedRequest {
                request: request(&line),
                weight: 1.0,
            }],
            ..constant_rate(&server.url(), 300.0, SECOND / 2)
        };
        run_plan(&plan);
        let mut lines: Vec<String> = server
            .requests()
            .into_iter()
            .map(|received| received.line)
            .collect();
        lines.sort();

        let counts: Vec<usize> = ["GET /1/ada%20b", "GET /2/eve", "GET /3/kim"]
            .iter()
            .map(|line| lines.iter().filter(|sent| sent == line).count())
            .collect();
        assert_eq!(
            counts.iter().sum::<usize>(),
            150,
            "columns of one row: {lines:?}"
        );
        assert_eq!(counts == [50, 50, 50], is_in_order, "{counts:?}");
        assert!(
            counts.iter().all(|count| count.abs_diff(50) < 25),
            "{counts:?}"
        );
    }
    std::fs::remove_file(&path).unwrap();
}
