//! Sessions: each sends its requests in order over its own connection, with cookies, and none is
//! lost.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{
    CapturePlan, CaptureSource, LoadProfile, OnBusy, SessionPlan, Step, StepPlan, Wire,
};
use loadgen::{LoadPlan, LoadReport, Outcome, SessionReport, StopToken, run};
use refsrv::{Config, Fault, FaultPlan, When};

use crate::support::{
    MS, SECOND, assert_consistent, capped, constant_hold, constant_rate, judge_timing, lock_host,
    noise_floor_ns, open_loop, server_with, url_of,
};
use crate::targets::request;
use crate::witness::{ReceivedRequest, WitnessServer, response};

fn session(weight: f64, name: &str, steps: &[(&str, u64)]) -> SessionPlan {
    let step = |(line, think_time_ns): &(&str, u64)| StepPlan {
        request: request(line),
        think_time_ns: *think_time_ns,
        captures: Vec::new(),
    };
    SessionPlan {
        name: name.to_owned(),
        weight,
        steps: steps.iter().map(step).collect(),
    }
}

/// Sessions at a constant rate, followed by a pause in which the last sessions can complete, even
/// on a slow host.
fn with_final_pause(
    url: &str,
    rate_per_s: f64,
    duration_ns: u64,
    sessions: Vec<SessionPlan>,
) -> LoadPlan {
    let pause = Step {
        rate_per_s: 0.0,
        duration_ns: 10 * SECOND,
    };
    let mut plan = constant_rate(url, rate_per_s, duration_ns + pause.duration_ns);
    open_loop(&mut plan).profile = LoadProfile::Steps(vec![
        Step {
            rate_per_s,
            duration_ns,
        },
        pause,
    ]);

    LoadPlan { sessions, ..plan }
}

fn run_plan(plan: &LoadPlan) -> (LoadReport, SessionReport) {
    let report = run(plan, &StopToken::new()).expect("a valid plan");
    assert_consistent(&report);

    let sessions = report.sessions.clone().expect("the plan has sessions");
    assert_eq!(
        sessions.started,
        sessions.completed + sessions.failed + sessions.unfinished
    );

    let listed: u64 = report.targets.iter().map(|target| target.scheduled).sum();
    assert_eq!(
        listed,
        report.scheduled(),
        "the requests of the targets add up"
    );
    assert!(
        report
            .verdict
            .reasons
            .iter()
            .all(|reason| reason.check != "arrival-count"),
        "{:?}",
        report.verdict.reasons
    );

    (report, sessions)
}

/// The requests of each connection, in order.
fn by_connection(server: &WitnessServer) -> BTreeMap<usize, Vec<ReceivedRequest>> {
    let mut connections: BTreeMap<usize, Vec<ReceivedRequest>> = BTreeMap::new();
    server.requests().into_iter().for_each(|request| {
        connections
            .entry(request.connection)
            .or_default()
            .push(request)
    });
    connections
}

/// Responds to a login with a cookie that contains the number of the connection.
fn respond_with_cookie(request: &ReceivedRequest) -> String {
    let fields = match request.line.as_str() {
        "GET /login" => format!(
            "Set-Cookie: id={}; Path=/; HttpOnly\r\nSet-Cookie: lang=en\r\n",
            request.connection
        ),
        _ => String::new(),
    };
    response(200, &fields, "yes")
}

#[test]
fn each_session_has_its_own_connection_and_cookies() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(respond_with_cookie);
        let lines = ["GET /login", "GET /cart", "POST /buy"];
        let plan = LoadPlan {
            wire,
            threads: 2,
            sessions: vec![
                session(
                    3.0,
                    "buy",
                    &[(lines[0], 0), (lines[1], 5 * MS), (lines[2], 0)],
                ),
                session(1.0, "look", &[("GET /look", 0)]),
            ],
            ..constant_rate(&server.url(), 200.0, SECOND)
        };
        let (report, sessions) = run_plan(&plan);
        let connections = by_connection(&server);

        // Sessions whose last requests are due after the end of the load are unfinished.
        assert_eq!(
            (sessions.started, sessions.failed, connections.len()),
            (200, 0, 200)
        );
        assert!(sessions.unfinished < 20, "{sessions:?}");

        let mut purchases = 0;
        for (connection, requests) in &connections {
            let lines_sent: Vec<&str> = requests
                .iter()
                .map(|request| request.line.as_str())
                .collect();
            let expected: &[&str] = if lines_sent[0] == "GET /look" {
                &["GET /look"]
            } else {
                &lines
            };

            assert!(expected.starts_with(&lines_sent), "{lines_sent:?}");

            purchases += u64::from(lines_sent.len() == 3);
            assert_eq!(
                requests[0].fields("cookie"),
                [] as [&str; 0],
                "a new user has no cookie"
            );

            let cookies = format!("id={connection}; lang=en");
            requests[1..]
                .iter()
                .for_each(|request| assert_eq!(request.fields("cookie"), [cookies.as_str()]));
        }

        assert_eq!(report.targets[2].ok, purchases);
        assert_eq!(sessions.completed, purchases + report.targets[3].ok);
        assert!(
            report.targets[3].scheduled.abs_diff(50) < 25,
            "one session in four only looks: {:?}",
            report.targets[3]
        );
        assert_eq!(report.targets[3].name, "look[1] GET /look");

        let not_reached: u64 = connections
            .values()
            .filter(|requests| requests.len() < 3 && requests[0].line != "GET /look")
            .map(|requests| 3 - requests.len() as u64)
            .sum();
        assert_eq!(sessions.requests_not_reached, not_reached);
    }
}

#[test]
fn a_failure_ends_the_session_and_requests_not_reached_are_reported() {
    let _host = lock_host();
    let server =
        WitnessServer::start(
            |request| match (request.line.as_str(), request.connection % 4) {
                ("GET /b", 0) => response(500, "", "no"),
                ("GET /b", 1) => String::new(),
                _ => response(200, "", "yes"),
            },
        );
    let sessions = vec![session(
        1.0,
        "s",
        &[("GET /a", 0), ("GET /b", 0), ("GET /c", 0), ("GET /d", 0)],
    )];
    let (report, sessions) = run_plan(&with_final_pause(
        &server.url(),
        200.0,
        SECOND / 2,
        sessions,
    ));
    let connections = by_connection(&server);
    let connections_with = |remainder: usize| {
        connections
            .keys()
            .filter(|connection| *connection % 4 == remainder)
            .count() as u64
    };
    let (by_status, by_close) = (connections_with(0), connections_with(1));

    assert_eq!(
        connections.len(),
        100,
        "each session has its own connection"
    );
    assert_eq!(
        (
            report.outcome(Outcome::HttpStatus),
            report.outcome(Outcome::Stale)
        ),
        (by_status, by_close)
    );

    let completed = 100 - by_status - by_close;
    let not_reached = 2 * (by_status + by_close);
    assert_eq!(
        (sessions.started, sessions.completed, sessions.failed),
        (100, completed, by_status + by_close)
    );
    assert_eq!(
        (sessions.unfinished, sessions.requests_not_reached),
        (0, not_reached)
    );
    assert_eq!(
        sessions.duration_ns.map(|duration_ns| duration_ns.count),
        Some(completed)
    );
    assert_eq!(report.scheduled(), 4 * 100 - not_reached);
}

#[test]
fn think_time_is_neither_response_time_nor_send_lag_and_keeps_the_connection() {
    judge_timing(|timing| {
        let server = WitnessServer::start(respond_with_cookie);
        let sessions = vec![session(
            1.0,
            "s",
            &[("GET /login", 50 * MS), ("GET /cart", 0)],
        )];
        let plan = LoadPlan {
            sessions,
            ..constant_rate(&server.url(), 200.0, SECOND)
        };
        let report = timing.observe_load(|| run_plan(&plan).0);
        let sessions = report.sessions.as_ref().expect("the plan has sessions");
        let completed = sessions.completed;
        let pauses: Vec<u64> = by_connection(&server)
            .values()
            .filter(|requests| requests.len() == 2)
            .map(|requests| requests[1].arrive_ns - requests[0].arrive_ns)
            .collect();

        assert_eq!(pauses.len() as u64, completed);
        assert!(completed > 100, "{completed}");

        // The mean of this many pauses has a standard deviation of at most 5 ms. The end of the
        // load cuts off the longest pauses.
        let mean_ns = pauses.iter().sum::<u64>() / pauses.len() as u64;
        timing.assert_min_expect_max("mean pause", Some(mean_ns), 25 * MS, 70 * MS);

        // A session consists of the first response, the pause before the second request, and the
        // second response.
        let duration_ns = sessions
            .duration_ns
            .as_ref()
            .expect("completed sessions")
            .mean as u64;

        timing.assert_min_expect_max(
            "mean duration of a session without its pause",
            duration_ns.checked_sub(mean_ns),
            0,
            4 * noise_floor_ns(0.5),
        );
        assert!(
            report.connections.peak > 2,
            "several users think at the same time"
        );

        let measures = report.measures();
        timing.expect_range(
            "send lag",
            measures.send_lag.quantile_ns(0.5),
            0,
            noise_floor_ns(0.5),
        );
        timing.expect_range(
            "response time",
            measures.response.quantile_ns(0.5),
            0,
            2 * noise_floor_ns(0.5),
        );
    });
}

#[test]
fn a_session_continues_on_a_new_connection_if_the_server_closes_each() {
    let _host = lock_host();
    let server = WitnessServer::start(|request| match request.line.as_str() {
        "GET /login" => response(200, "Set-Cookie: id=1\r\nConnection: close\r\n", "yes"),
        _ => response(
            200,
            "Set-Cookie: id=; Max-Age=0\r\nConnection: close\r\n",
            "yes",
        ),
    });
    let sessions = vec![session(
        1.0,
        "s",
        &[("GET /login", 0), ("GET /logout", 0), ("GET /", 0)],
    )];
    let (_, sessions) = run_plan(&with_final_pause(
        &server.url(),
        100.0,
        SECOND / 2,
        sessions,
    ));

    assert_eq!((sessions.started, sessions.completed), (50, 50));

    for request in server.requests() {
        let expected: &[&str] = if request.line == "GET /logout" {
            &["id=1"]
        } else {
            &[]
        };
        assert_eq!(request.fields("cookie"), expected, "{}", request.line);
    }
}

#[test]
fn no_session_is_lost_with_too_few_connections() {
    let _host = lock_host();
    for (on_busy, is_shed) in [(OnBusy::Shed, true), (OnBusy::Queue, false)] {
        let server = WitnessServer::start(respond_with_cookie);
        let mut plan = constant_rate(&server.url(), 200.0, SECOND / 2);
        plan.sessions = vec![session(
            1.0,
            "s",
            &[("GET /login", 20 * MS), ("GET /cart", 0)],
        )];
        plan.phases.drain_ns = Some(50 * MS);
        (
            open_loop(&mut plan).on_busy,
            open_loop(&mut plan).max_connections,
        ) = (on_busy, Some(2));
        let (report, sessions) = run_plan(&plan);

        assert_eq!(sessions.started, 100);
        assert!(
            report.connections.peak <= 2 && sessions.completed > 10,
            "{sessions:?}"
        );

        let dropped = report.outcome(Outcome::Dropped);
        assert_eq!(
            (dropped > 20, sessions.failed),
            (is_shed, dropped),
            "{on_busy:?}: {sessions:?}"
        );
        assert_eq!(report.scheduled() + sessions.requests_not_reached, 200);
    }
}

#[test]
fn sessions_that_still_wait_for_a_connection_do_not_prolong_the_load() {
    let _host = lock_host();
    let server = server_with(Config {
        faults: FaultPlan::none().with(Fault::NeverAnswer, When::every(1)),
        ..constant_hold(0)
    });
    let mut plan = capped(&url_of(&server), 50.0, SECOND, 1);
    plan.sessions = vec![session(1.0, "s", &[("GET /login", 0), ("GET /cart", 0)])];
    plan.timeout_ns = 200 * MS;
    let (report, sessions) = run_plan(&plan);
    // Sessions start one after another for one second, and the last one ends with its timeout. All
    // 50 would take ten seconds.
    let (timeouts, waiting) = (
        report.outcome(Outcome::Timeout),
        report.outcome(Outcome::Unfinished),
    );

    assert_eq!((timeouts + waiting, sessions.started), (50, 50));
    assert!((1..25).contains(&timeouts), "{:?}", report.outcomes);
    assert_eq!((sessions.failed, sessions.unfinished), (timeouts, waiting));
}

/// A session that captures a value from each kind of source and sends the values in each part of a
/// request.
fn capturing_session() -> SessionPlan {
    let capture = |name: &str, source: CaptureSource, expression: &str| CapturePlan {
        name: name.to_owned(),
        source,
        expression: expression.to_owned(),
    };
    let mut session = session(
        1.0,
        "s",
        &[("GET /login", 0), ("POST /u/{{id}}?n={{name}}", MS)],
    );
    session.steps[0].captures = vec![
        capture("id", CaptureSource::Json, ".user.id"),
        capture("name", CaptureSource::Header, "x-name"),
        capture("csrf", CaptureSource::Regex, "csrf=(\\w+)"),
    ];
    let second = &mut session.steps[1].request;
    second.headers = vec![
        ("Authorization".to_owned(), "Bearer {{id}}".to_owned()),
        ("Cookie".to_owned(), "first={{csrf}}".to_owned()),
    ];
    second.body_base64 = Some(STANDARD.encode("{\"csrf\": \"{{csrf}}\", \"braces\": \"{{{{\"}"));

    session
}

/// Responds to a login with values that contain the number of the connection.
fn respond_with_values(request: &ReceivedRequest) -> String {
    if request.line != "GET /login" {
        return response(200, "", "yes");
    }
    let number = request.connection;
    response(
        200,
        &format!("X-Name: n {number}\r\nSet-Cookie: c={number}\r\n"),
        &format!("{{\"user\": {{\"id\": {number}}}, \"form\": \"csrf=t{number}&\"}}"),
    )
}

#[test]
fn captured_values_are_sent_in_every_part_of_later_requests() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(respond_with_values);
        let plan = LoadPlan {
            wire,
            threads: 2,
            ..with_final_pause(&server.url(), 100.0, SECOND / 2, vec![capturing_session()])
        };
        let (_, sessions) = run_plan(&plan);

        assert_eq!((sessions.completed, sessions.failed), (50, 0), "{wire:?}");

        for (number, requests) in by_connection(&server) {
            let second = &requests[1];
            assert_eq!(second.line, format!("POST /u/{number}?n=n%20{number}"));
            assert_eq!(second.fields("authorization"), [format!("Bearer {number}")]);
            assert_eq!(
                second.fields("cookie"),
                [format!("first=t{number}; c={number}")]
            );

            let body = format!("{{\"csrf\": \"t{number}\", \"braces\": \"{{{{\"}}");
            assert_eq!(second.body, body);
        }
    }
}

#[test]
fn a_response_without_the_captured_value_is_incorrect_and_ends_its_session() {
    let _host = lock_host();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(|request| match request.connection % 2 {
            0 => respond_with_values(request),
            _ => response(200, "X-Name: n\r\n", "csrf=a {\"user\": {}}"),
        });
        let plan = LoadPlan {
            wire,
            ..with_final_pause(&server.url(), 100.0, SECOND / 2, vec![capturing_session()])
        };
        let (report, sessions) = run_plan(&plan);

        assert_eq!((sessions.completed, sessions.failed), (25, 25), "{wire:?}");
        assert_eq!(report.outcome(Outcome::BadBody), 25);
        assert_eq!(report.targets[1].scheduled, 25);

        if wire == Wire::Native {
            let reason = report.wrong_responses[0].reason.as_deref();
            assert_eq!(
                reason,
                Some("no value for {{id}}: the body is not JSON or has no .user.id")
            );
        }
    }
}
