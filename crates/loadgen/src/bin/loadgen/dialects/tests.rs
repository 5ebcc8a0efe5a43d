//! The translations of each tool's command lines.

use clap::{CommandFactory as _, FromArgMatches as _};

use super::*;

fn commands(line: &str) -> Result<Vec<LoadgenCommand>, String> {
    let words: Vec<OsString> = line.split_ascii_whitespace().map(OsString::from).collect();
    let (name, its_words) = requested(&words).expect("a dialect");
    translate(&name, its_words).map_err(|refusal| match refusal {
        Refusal::Message(message) => message,
        Refusal::Printed(error) => error.to_string(),
    })
}

/// The single command that a line is translated into, without the program.
fn line(text: &str) -> String {
    let commands = commands(&format!("loadgen --as {text}")).expect(text);
    let [command] = &commands[..] else {
        panic!("several commands for {text}")
    };
    command.line().replacen("loadgen ", "", 1)
}

fn refusal(text: &str) -> String {
    commands(&format!("loadgen --as {text}")).expect_err(text)
}

/// Every translation must be a valid command line of loadgen.
fn assert_parses(text: &str) {
    for command in commands(&format!("loadgen --as {text}")).expect(text) {
        let matches = crate::arguments::Arguments::command()
            .try_get_matches_from(command.words())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let arguments =
            crate::arguments::Arguments::from_arg_matches(&matches).expect("a valid command line");
        let (mut plan, _) = arguments.plan().expect("a plan");
        plan.sessions = command.session_plans();
        plan.validate()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn only_the_first_word_chooses_a_dialect() {
    let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
    assert!(requested(&words("loadgen http://h/ --as wrk")).is_none());
    assert!(requested(&words("loadgen")).is_none());
    let given = words("loadgen --as=wrk -c1");
    let (name, rest) = requested(&given).expect("a dialect");
    assert_eq!((name.as_str(), rest), ("wrk", &given[2..]));
    assert!(refusal("siege -c1").contains("--as ab"));
    assert!(commands("loadgen --as").is_err());
}

#[test]
fn wrk_is_a_closed_loop_limited_by_time() {
    assert_eq!(
        line("wrk -t4 -c1k -d2m --latency http://h:8000/a -H A:b"),
        "http://h:8000/a --threads 4 -c 1000 -d 120s --timeout 2s -H 'A: b'"
    );
    assert_eq!(
        line("wrk http://h/ --time 500ms --conn 5"),
        "http://h/ --threads 2 -c 4 -d 10s --timeout 500ms",
        "connections that do not divide evenly are omitted"
    );
    assert!(line("wrk https://h/").ends_with("--insecure"));
    assert!(refusal("wrk -t4 -c2 http://h/").contains("-c must be at least -t"));
}

#[test]
fn ab_is_a_closed_loop_of_a_number_of_http_1_0_requests() {
    assert_eq!(
        line("ab -n 100 -c 5 http://h/"),
        "http://h/ --http1.0 --keepalive off -c 5 -n 100 -d 1h --timeout 30s \
        -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*'"
    );
    assert_eq!(
        line("ab -k -s 5 -H accept:a -p body -T text/html -A u:p -C a=b http://h/"),
        "http://h/ --http1.0 --keepalive on -c 1 -n 1 -d 1h --timeout 5s -X POST --body-file body \
        -H 'User-Agent: ApacheBench/2.3' -H 'accept: a' -H 'Content-Type: text/html' \
        -H 'Cookie: …' -H 'Authorization: …'"
    );
    assert!(line("ab -i http://h/").contains(" -X HEAD "));
    assert!(line("ab -E a.pem https://h/").contains(" --client-cert a.pem --insecure "));
    assert!(line("ab -m PATCH -u body http://h/").contains(" -X PATCH --body-file body "));
    assert!(refusal("ab -n 2 -c 3 http://h/").contains("use a smaller -c"));
}

#[test]
fn the_last_of_ab_s_count_and_time_applies() {
    assert!(line("ab -t 3 http://h/").contains(" -n 50000 -d 3s "));
    assert!(line("ab -n 7 -t 3 http://h/").contains(" -n 50000 -d 3s "));
    assert!(line("ab -t 3 -n 70000 http://h/").contains(" -n 70000 -d 3s "));
}

#[test]
fn httperf_opens_connections_at_a_constant_rate() {
    assert_eq!(
        line("httperf --server=h --port=8000 --uri=/a?b --rate=150 --num-conns=450 --hog"),
        "{ echo '[calls]'; yes 'GET /a?b' | head -n 1; } | http://h:8000/ -R 150 -d 3s \
        --arrivals constant -H 'User-Agent: httperf/0.9.0' -H 'Host: h' --sessions -"
            .replacen("| http", "| loadgen http", 1)
            .replacen("loadgen ", "", 1)
    );
    let exponential = commands(
        "loadgen --as httperf --ssl --server h --period e0.01 --num-conn 10 --num-call 3 --timeout 5",
    );
    let [command] = &exponential.expect("one")[..] else {
        panic!("several")
    };
    assert!(
        command
            .line()
            .contains("head -n 3; } | loadgen https://h/ -R 100 -d 100ms")
    );
    assert!(
        command
            .line()
            .contains("--arrivals poisson --timeout 5s --insecure")
    );
    assert_eq!(command.notes.len(), 2, "{:?}", command.notes);
    let added =
        line(r"httperf --rate 1 --add-header=A:b\nC:d\n --server-name x --http-version 1.0");
    assert!(added.contains("--http1.0"), "{added}");
    assert!(
        added.contains("-H 'Host: x' -H 'Connection: keep-alive' -H 'A: b' -H 'C: d'"),
        "{added}"
    );
    assert!(refusal("httperf --num-conns 5").contains("-c 1 --keepalive off"));
    assert!(refusal("httperf --period u1,2").contains("--period u1,2 is not supported"));
}

#[test]
fn each_cycle_of_funkload_is_a_separate_load() {
    let cycles = commands(
        "loadgen --as funkload --users 50,100 -D 120 -m 0.5 -M 1.5 -u http://h/ --json a/r.json",
    );
    let lines: Vec<String> = cycles
        .expect("two")
        .iter()
        .map(LoadgenCommand::line)
        .collect();
    let of = |users: u32| {
        format!(
            "loadgen http://h/ --http1.0 --keepalive off -c {users} -d 120s --think-time 1s \
            -H 'User-Agent: FunkLoad/1.17.1' --json a/r-{users}.json"
        )
    };
    assert_eq!(lines, [of(50), of(100)]);
    assert!(line("funkload -c 5 -f -m 3 http://h/ --expect-status 204").contains("-d 10s -H"));
    assert!(refusal("funkload -c 5 test_app.py").contains("--sessions FILE"));
    for wrong in ["x", "0"] {
        let message = refusal(&format!("funkload -c 5:{wrong} http://h/"));
        assert!(
            message.contains(&format!("{wrong:?} is not a number of users")),
            "{message}"
        );
    }
}

#[test]
fn unknown_flags_are_refused_with_the_closest_option() {
    for (text, expected) in [
        (
            "wrk -s a.lua http://h/",
            "--as wrk: -s is not supported: Lua scripts cannot run",
        ),
        ("wrk --scri a.lua http://h/", "--script is not supported"),
        (
            "wrk --rate 5 http://h/",
            "unknown option --rate (closest loadgen option: --rate);",
        ),
        (
            "wrk --keep-alive http://h/",
            "(closest loadgen option: --keepalive);",
        ),
        (
            "ab -R 5 http://h/",
            "--as ab: unknown option -R (closest loadgen option: --rate);",
        ),
        ("ab -g out http://h/", "--json FILE"),
        (
            "httperf --wsess=1,2,3",
            "--as httperf: --wsess is not supported: use loadgen URL",
        ),
        (
            "funkload --zzzzzz -c 1 http://h/",
            "unknown option --zzzzzz; omit it",
        ),
    ] {
        let message = refusal(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn invalid_values_are_refused_by_the_parser_of_the_dialect() {
    assert!(refusal("wrk -c ten http://h/").contains("\"ten\" is not a number"));
    assert!(refusal("ab").contains("<URL>"));
}

#[test]
fn every_translation_is_a_valid_load() {
    for text in [
        "wrk -t2 -c10 -d1s http://127.0.0.1:1/",
        "ab -n 100 -c 5 http://127.0.0.1:1/",
        "ab -k -t 1 http://127.0.0.1:1/",
        "httperf --server=127.0.0.1 --port=1 --rate=333 --num-conns=1000 --num-calls=7",
        "funkload --users 5,10 http://127.0.0.1:1/ --expect-regex ok",
    ] {
        assert_parses(text);
    }
}

#[test]
fn httperf_schedules_exactly_its_connections() {
    for (connections, rate) in [
        (10_000, 1_000.0),
        (450, 150.0),
        (1_000, 333.0),
        (7, 0.7),
        (99, 61.3),
    ] {
        let text = format!(
            "loadgen --as httperf --server=127.0.0.1 --port=1 --rate={rate} --num-conns={connections}"
        );
        let command = commands(&text).expect("a load").remove(0);
        let matches = crate::arguments::Arguments::command()
            .try_get_matches_from(command.words())
            .expect("a valid command line");
        let arguments =
            crate::arguments::Arguments::from_arg_matches(&matches).expect("a valid command line");
        let (plan, _) = arguments.plan().expect("a plan");
        let loadgen::plan::LoadModel::Open(open) = &plan.load else {
            panic!("a closed loop")
        };
        let arrivals = loadgen::Schedule::new(open, 0, &plan.phases).count();
        assert_eq!(arrivals, connections, "at {rate}/s");
    }
}
