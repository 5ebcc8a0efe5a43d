//! Sessions: sequential requests over a separate connection, with cookies; none is lost.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadgen::plan::{
    CapturePlan, CaptureSource, LoadProfile, OnBusy, SessionPlan, Step, StepPlan, Wire,
};
use loadgen::{LoadPlan, LoadReport, Outcome, SessionReport, StopToken, run};
use refsrv::{Config, Fault, FaultPlan, When};

use crate::support::{
    MS, SECOND, alone, assert_sound, capped, constant, floor_ns, holding, judge_timing, open_loop,
    server_with, url_of,
};
use crate::targets::request;
use crate::witness::{Seen, WitnessServer, answer};

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

/// Sessions at a constant rate, followed by a pause in which the last sessions can end even on a
/// slow host. Without the pause, they would be unfinished.
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
    let mut plan = constant(url, rate_per_s, duration_ns + pause.duration_ns);
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
    assert_sound(&report);
    let sessions = report.sessions.clone().expect("the plan has sessions");
    assert_eq!(
        sessions.started,
        sessions.completed + sessions.failed + sessions.unfinished
    );
    let listed: u64 = report.targets.iter().map(|target| target.scheduled).sum();
    assert_eq!(
        listed,
        report.scheduled(),
        "the requests share out the arrivals"
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
fn by_connection(server: &WitnessServer) -> BTreeMap<usize, Vec<Seen>> {
    let mut connections: BTreeMap<usize, Vec<Seen>> = BTreeMap::new();
    server
        .seen()
        .into_iter()
        .for_each(|seen| connections.entry(seen.connection).or_default().push(seen));
    connections
}

/// Greets each connection with a cookie that names it.
fn greet(seen: &Seen) -> String {
    let fields = match seen.line.as_str() {
        "GET /login" => format!(
            "Set-Cookie: id={}; Path=/; HttpOnly\r\nSet-Cookie: lang=en\r\n",
            seen.connection
        ),
        _ => String::new(),
    };
    answer(200, &fields, "yes")
}

#[test]
fn each_session_has_its_own_connection_and_cookies() {
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(greet);
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
            ..constant(&server.url(), 200.0, SECOND)
        };
        let (report, sessions) = run_plan(&plan);
        let connections = by_connection(&server);
        // A session whose last requests would have been due after the end is cut short.
        assert_eq!(
            (sessions.started, sessions.failed, connections.len()),
            (200, 0, 200)
        );
        assert!(sessions.unfinished < 20, "{sessions:?}");
        let mut bought = 0;
        for (connection, seen) in &connections {
            let came: Vec<&str> = seen.iter().map(|seen| seen.line.as_str()).collect();
            let script: &[&str] = if came[0] == "GET /look" {
                &["GET /look"]
            } else {
                &lines
            };
            assert!(script.starts_with(&came), "{came:?}");
            bought += u64::from(came.len() == 3);
            assert_eq!(
                seen[0].fields("cookie"),
                [] as [&str; 0],
                "a new user has no cookie"
            );
            let cookies = format!("id={connection}; lang=en");
            seen[1..]
                .iter()
                .for_each(|seen| assert_eq!(seen.fields("cookie"), [cookies.as_str()]));
        }
        assert_eq!(report.targets[2].ok, bought);
        assert_eq!(sessions.completed, bought + report.targets[3].ok);
        assert!(
            report.targets[3].scheduled.abs_diff(50) < 25,
            "a quarter only browses: {:?}",
            report.targets[3]
        );
        assert_eq!(report.targets[3].name, "look[1] GET /look");
        let left: u64 = connections
            .values()
            .filter(|seen| seen.len() < 3 && seen[0].line != "GET /look")
            .map(|seen| 3 - seen.len() as u64)
            .sum();
        assert_eq!(sessions.requests_not_reached, left);
    }
}

#[test]
fn a_failure_ends_the_session_and_requests_not_reached_are_reported() {
    let _alone = alone();
    let server = WitnessServer::start(|seen| match (seen.line.as_str(), seen.connection % 4) {
        ("GET /b", 0) => answer(500, "", "no"),
        ("GET /b", 1) => String::new(),
        _ => answer(200, "", "yes"),
    });
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
    let failed = |rest: usize| {
        connections
            .keys()
            .filter(|connection| *connection % 4 == rest)
            .count() as u64
    };
    let (by_status, by_end) = (failed(0), failed(1));
    assert_eq!(connections.len(), 100, "each session had its own");
    assert_eq!(
        (
            report.outcome(Outcome::HttpStatus),
            report.outcome(Outcome::Stale)
        ),
        (by_status, by_end)
    );
    let rest = 100 - by_status - by_end;
    let not_reached = 2 * (by_status + by_end);
    assert_eq!(
        (sessions.started, sessions.completed, sessions.failed),
        (100, rest, by_status + by_end)
    );
    assert_eq!(
        (sessions.unfinished, sessions.requests_not_reached),
        (0, not_reached)
    );
    assert_eq!(
        sessions.duration_ns.map(|duration_ns| duration_ns.count),
        Some(rest)
    );
    assert_eq!(report.scheduled(), 4 * 100 - not_reached);
}

#[test]
fn think_time_is_neither_response_time_nor_lateness_and_holds_the_connection() {
    judge_timing(|timing| {
        let server = WitnessServer::start(greet);
        let sessions = vec![session(
            1.0,
            "s",
            &[("GET /login", 50 * MS), ("GET /cart", 0)],
        )];
        let plan = LoadPlan {
            sessions,
            ..constant(&server.url(), 200.0, SECOND)
        };
        let report = timing.watch(|| run_plan(&plan).0);
        let sessions = report.sessions.as_ref().expect("the plan has sessions");
        let completed = sessions.completed;
        let pauses: Vec<u64> = by_connection(&server)
            .values()
            .filter(|seen| seen.len() == 2)
            .map(|seen| seen[1].arrive_ns - seen[0].arrive_ns)
            .collect();
        assert_eq!(pauses.len() as u64, completed);
        assert!(completed > 100, "{completed}");
        // The mean of this many pauses has a standard deviation of at most 5 ms; the end of the
        // load cuts off the longest pauses.
        let mean_ns = pauses.iter().sum::<u64>() / pauses.len() as u64;
        timing.within("mean pause", Some(mean_ns), 25 * MS, 70 * MS);
        // A session is its first response, the pause up to the second request, and the second
        // response.
        let duration_ns = sessions
            .duration_ns
            .as_ref()
            .expect("many were completed")
            .mean as u64;
        timing.within(
            "mean session less its pause",
            duration_ns.checked_sub(mean_ns),
            0,
            4 * floor_ns(0.5),
        );
        assert!(report.connections.peak > 2, "several think at a time");
        let measures = report.measures();
        timing.about(
            "send lag",
            measures.send_lag.quantile_ns(0.5),
            0,
            floor_ns(0.5),
        );
        timing.about(
            "response time",
            measures.response.quantile_ns(0.5),
            0,
            2 * floor_ns(0.5),
        );
    });
}

#[test]
fn a_session_continues_on_a_new_connection_if_the_server_closes_each() {
    let _alone = alone();
    let server = WitnessServer::start(|seen| match seen.line.as_str() {
        "GET /login" => answer(200, "Set-Cookie: id=1\r\nConnection: close\r\n", "yes"),
        _ => answer(
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
    for seen in server.seen() {
        let expected: &[&str] = if seen.line == "GET /logout" {
            &["id=1"]
        } else {
            &[]
        };
        assert_eq!(seen.fields("cookie"), expected, "{}", seen.line);
    }
}

#[test]
fn no_session_is_lost_with_few_connections() {
    let _alone = alone();
    for (on_busy, is_shed) in [(OnBusy::Shed, true), (OnBusy::Queue, false)] {
        let server = WitnessServer::start(greet);
        let mut plan = constant(&server.url(), 200.0, SECOND / 2);
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
    let _alone = alone();
    let server = server_with(Config {
        faults: FaultPlan::none().with(Fault::NeverAnswer, When::every(1)),
        ..holding(0)
    });
    let mut plan = capped(&url_of(&server), 50.0, SECOND, 1);
    plan.sessions = vec![session(1.0, "s", &[("GET /login", 0), ("GET /cart", 0)])];
    plan.timeout_ns = 200 * MS;
    let (report, sessions) = run_plan(&plan);
    // Sessions are tried one after the other for a second, and the last of them until its timeout.
    // All 50 would take ten seconds.
    let (tried, waiting) = (
        report.outcome(Outcome::Timeout),
        report.outcome(Outcome::Unfinished),
    );
    assert_eq!((tried + waiting, sessions.started), (50, 50));
    assert!((1..25).contains(&tried), "{:?}", report.outcomes);
    assert_eq!((sessions.failed, sessions.unfinished), (tried, waiting));
}

/// A session that captures a value from each kind of source and sends it in each part of a request.
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

/// Gives each connection its own values.
fn give(seen: &Seen) -> String {
    if seen.line != "GET /login" {
        return answer(200, "", "yes");
    }
    let number = seen.connection;
    answer(
        200,
        &format!("X-Name: n {number}\r\nSet-Cookie: c={number}\r\n"),
        &format!("{{\"user\": {{\"id\": {number}}}, \"form\": \"csrf=t{number}&\"}}"),
    )
}

#[test]
fn captured_values_are_sent_in_every_part_of_later_requests() {
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(give);
        let plan = LoadPlan {
            wire,
            threads: 2,
            ..with_final_pause(&server.url(), 100.0, SECOND / 2, vec![capturing_session()])
        };
        let (_, sessions) = run_plan(&plan);
        assert_eq!((sessions.completed, sessions.failed), (50, 0), "{wire:?}");
        for (number, seen) in by_connection(&server) {
            let second = &seen[1];
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
    let _alone = alone();
    for wire in [Wire::Native, Wire::Hyper] {
        let server = WitnessServer::start(|seen| match seen.connection % 2 {
            0 => give(seen),
            _ => answer(200, "X-Name: n\r\n", "csrf=a {\"user\": {}}"),
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
