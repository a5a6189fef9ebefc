//! Templates that take all that they can get.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use platen_harness::procfs;
use platen_shared::job::RenderJob;
use serde_json::json;

use super::picture;
use crate::support::{GREEN_PAGE, MAX_WAIT_MS, Shared, farm_process::FarmProcess, html, of, send};

/// The limit, and the time between two ticks of the kernel, of which the figures of a process are multiples.
const MAX_CPU_TIME: Duration = Duration::from_millis(200 + 30);

/// Sixty levels, of which each has the one before twice.
const TWICE: &str =
    "{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
/// The same, in objects.
const TWICE_IN_OBJECTS: &str = "{% set ns = namespace(x={'a': 1}) %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}";
/// A chain of 50,000 lists.
const DEEP: &str = "{% set ns = namespace(x=1, y=1) %}{% for i in range(500) %}{% for j in range(100) %}\
    {% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{% endfor %}";
const CHAIN: &str = "{% set ns = namespace(r=[]) %}{% for i in range(500) %}{% for j in range(100) %}\
    {% set ns.r = ns.r + [1] %}{% endfor %}{% endfor %}";

fn templates() -> Vec<String> {
    let with =
        |start: &str, ends: &[&str]| ends.iter().map(|end| format!("{start}{end}")).collect::<Vec<_>>();
    let other = [("[ns.x]", "[ns.x, ns.x]"), ("{{ ", " }}")];
    let twice = with(
        TWICE,
        &[
            "{{ ns.x }}",
            "{{ ns.x ~ '' }}",
            "{{ ns.x | join }}",
            "{{ ns.x | tojson }}",
            "{{ ns.x | string | length }}",
            "{{ ns.x | upper }}",
            "{{ ns.x | sum }}",
            "{{ ns.x | number }}",
            "{{ [ns.x, ns.x] | unique | length }}",
            "{{ '%s' | format(ns.x) }}",
            "{% set ns.s = ns.x | tojson %}",
            "{{ ns[ns.x] }}",
            "{{ {ns.x: 1} }}",
            "{{ ns.x | urlencode }}",
            "{{ ns.x | replace('a', 'b') }}",
        ],
    );
    let copies: Vec<String> = with(
        &TWICE
            .replace(other[0].0, other[0].1)
            .replace("x=['a']", "x=['a'], y=['a']")
            .replace("{% endfor %}", "{% set ns.y = [ns.y, ns.y] %}{% endfor %}"),
        &[
            "{{ ns.x == ns.y }}",
            "{{ ns.x != ns.y }}",
            "{{ ns.x < ns.y }}",
            "{{ ns.x in [ns.y] }}",
            "{{ [ns.x, ns.y] | sort | length }}",
            "{{ [ns.x, ns.y] | unique | length }}",
            "{{ [ns.x, ns.y] | min }}",
            "{{ [{'a': ns.x}, {'a': ns.y}] | groupby('a') | length }}",
            "{{ {'a': ns.x, 'b': ns.y} | dictsort(by='value') | length }}",
        ],
    );
    let objects = with(
        TWICE_IN_OBJECTS,
        &["{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | dictsort }}", "{{ ns.x | items | list }}"],
    );
    let deep = with(
        DEEP,
        &[
            "{{ ns.x == ns.y }}",
            "{{ ns.x }}",
            "{{ ns.x | tojson }}",
            "{{ [ns.x, ns.y] | sort | length }}",
            "{{ ns.x in [ns.y] }}",
        ],
    );
    let chain = with(CHAIN, &["", "{{ ns.r }}", "{{ ns.r | length }}", "{{ ns.r | sum }}"]);
    let large = [
        "{{ 'x' * 10000000 }}",
        "{{ 'x' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[]) %}{% for i in range(9) %}{% set ns.s = ns.s + ['x' * 9000000] %}{% endfor %}{{ ns.s | join }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m('aaaa') }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    ];
    [twice, copies, objects, deep, chain, large.map(str::to_owned).to_vec()].concat()
}

/// Sends each to a farm of its own, whose figures no other test changes. A template that is filled within its limits is no failure.
pub(super) async fn limits(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let good = html(GREEN_PAGE);
    farm.expect_green(&good).await;
    let used = || {
        let with_reaped = procfs::cpu_time_with_reaped(farm.pid()).unwrap();
        with_reaped.saturating_sub(procfs::cpu_time(farm.pid()).unwrap())
    };
    let mut beyond = 0;
    for template in templates() {
        let before = used();
        let (status, body) = send(&farm, &picture(&template, &json!({})), MAX_WAIT_MS).await;
        let time = used().saturating_sub(before);
        let answer = String::from_utf8_lossy(&body);
        println!("{time:?} {status} {template:.200} {:.100}", if status == 200 { "" } else { &answer });
        assert!([200, 400, 422].contains(&status), "{status} {template} {answer:.200}");
        assert!(time <= MAX_CPU_TIME, "{time:?}: {template}");
        beyond += usize::from(status == 422);
    }
    assert!(beyond >= 30, "{beyond}");
    farm.expect_green(&good).await;
    assert!(!farm.log().contains("panicked"), "{}", farm.log());
}

pub(super) async fn neighbours(_: Arc<Shared>) {
    let farm = Arc::new(FarmProcess::start(&[]).await);
    let good = of("acc_good", html(GREEN_PAGE));
    let template =
        of("acc_other", picture("{% if 1 %}{{ page | safe }}{% endif %}", &json!({ "page": GREEN_PAGE })));
    let render = async |job: &RenderJob| {
        let began = Instant::now();
        for _ in 0..10 {
            farm.expect_green(job).await;
        }
        began.elapsed() / 10
    };
    render(&good).await;
    let alone = [render(&good).await, render(&template).await];
    let hostile: Vec<_> = (0..10)
        .map(|_| {
            let farm = Arc::clone(&farm);
            tokio::spawn(async move {
                let mut statuses = Vec::new();
                for _ in 0..5 {
                    let template = format!("{TWICE}{{{{ ns.x }}}}");
                    statuses.push(send(&farm, &picture(&template, &json!({})), MAX_WAIT_MS).await.0);
                }
                statuses
            })
        })
        .collect();
    let beside = [render(&good).await, render(&template).await];
    println!(
        "good jobs, without and with a template, take {alone:?} alone, {beside:?} beside ten hostile ones"
    );
    for statuses in hostile {
        assert_eq!(statuses.await.unwrap(), [422; 5]);
    }
    farm.expect_green(&good).await;
}
