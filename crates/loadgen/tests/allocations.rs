//! A request needs no allocation, even with placeholders: a load with ten times as many requests
//! makes hardly more allocations.
//!
//! A separate program, because it counts every allocation of its process.

use loadgen::plan::ReceiveStamps;
use loadgen::{LoadPlan, Outcome, StopToken, run};
use refsrv::{Config, ReferenceServer};

#[global_allocator]
static COUNTED: dhat::Alloc = dhat::Alloc;

const SECOND: u64 = 1_000_000_000;
const CONNECTIONS: usize = 16;
/// Additional allocations of a longer load: its slices and batches, and vectors that grow with
/// them. An allocation for one request in a hundred would add hundreds.
const MAX_EXTRA_ALLOCATIONS: u64 = 100;

/// Allocations of a closed loop, and its number of requests. The fast server makes none per
/// request.
fn allocations(
    server: &ReferenceServer,
    path: &str,
    stamps: ReceiveStamps,
    measure_ns: u64,
) -> (u64, u64) {
    let plan = LoadPlan::closed(
        &format!("http://{}{path}", server.addr()),
        CONNECTIONS,
        measure_ns,
    );
    let plan = LoadPlan {
        receive_stamps: Some(stamps),
        ..plan
    };
    let before = dhat::HeapStats::get().total_blocks;
    let report = run(&plan, &StopToken::new()).expect("a report");
    assert_eq!(report.outcome(Outcome::Ok), report.scheduled());
    (
        dhat::HeapStats::get().total_blocks - before,
        report.scheduled(),
    )
}

#[test]
fn a_request_costs_no_allocation() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let server = ReferenceServer::start(Config {
        fast: true,
        ..Config::default()
    })
    .expect("a server");
    let placeholders = "/{{seq:1}}?n={{random:1:1000}}&id={{uuid}}";
    for (path, stamps) in [
        ("/", ReceiveStamps::User),
        ("/", ReceiveStamps::Kernel),
        (placeholders, ReceiveStamps::User),
    ] {
        let (few, requests) = allocations(&server, path, stamps, SECOND / 10);
        let (many, more_requests) = allocations(&server, path, stamps, SECOND);
        let per_request = many.saturating_sub(few) as f64 / (more_requests - requests) as f64;
        assert!(
            more_requests > requests + 1_000,
            "{requests} and {more_requests} requests are too few to tell"
        );
        assert!(
            many <= few + MAX_EXTRA_ALLOCATIONS,
            "{few} and {many}: {per_request} per request ({path}, {stamps:?})"
        );
    }
}
