//! Data that a page stores on an origin: later pages of the same account and of another find none of it.

use std::collections::BTreeMap;

use super::ssrf_harness::{SECURE_HOST, SsrfHarness};
use crate::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    vec![Case::own_server("egress/nothing_is_left_on_an_origin", leaks)]
}

/// Lists what it finds on the origin, then stores everything that it can.
const PAGE: &str = r"<!doctype html><body><script>
const found = [], slow = [];
const within = (promise) => Promise.race([promise, new Promise(done => setTimeout(done, LIMIT, slow))]);
const look = async (name, read) => { try { const seen = await within(read());
  if (seen === slow) slow.push(name); else if (seen) found.push(name) } catch {} };
const database = () => new Promise((done, fail) => {
  const opening = indexedDB.open('leak'); let is_new = false;
  opening.onupgradeneeded = () => { is_new = true; opening.result.createObjectStore('x') };
  opening.onsuccess = () => { opening.result.close(); done(!is_new) }; opening.onerror = fail; });
const channel = new BroadcastChannel('leak'); let heard = false; channel.onmessage = event => { if (event.data !== NUMBER) heard = true };
(async () => {
  await look('cookie', () => document.cookie.includes('leak'));
  await look('localStorage', () => localStorage.leak);
  await look('sessionStorage', () => sessionStorage.leak);
  await look('name', () => name);
  await look('history', () => history.state || history.length > 2);
  await look('indexedDB', database);
  await look('caches', async () => (await caches.keys()).length);
  await look('files', async () => { const d = await navigator.storage.getDirectory();
    for await (const entry of d.keys()) return true; });
  await look('serviceWorker', async () => (await navigator.serviceWorker.getRegistrations()).length
    || navigator.serviceWorker.controller);
  await look('locks', async () => (await navigator.locks.query()).held.length);
  await look('sharedWorker', () => new Promise(done => { const w = new SharedWorker('/shared.js', 'leak');
    w.port.onmessage = event => done(event.data > 1); w.port.postMessage(NUMBER); }));
  await look('httpCache', async () => { const first = await (await fetch('/number')).text();
    return first !== NUMBER; });
  await look('permission', async () => (await navigator.permissions.query({ name: 'geolocation' })).state === 'granted');
  document.cookie = 'leak=1; max-age=9999'; localStorage.leak = sessionStorage.leak = 1; name = 'leak';
  try { await caches.open('leak').then(c => c.add('/number')) } catch {}
  try { await (await navigator.storage.getDirectory()).getFileHandle('leak', { create: true }) } catch {}
  try { await within(navigator.serviceWorker.register('/service.js')) } catch {}
  navigator.locks?.request('leak', () => new Promise(() => {}));
  setInterval(() => channel.postMessage(NUMBER), 10);
  await new Promise(done => setTimeout(done, 200));
  if (heard) found.push('broadcast');
  document.body.textContent = slow.length ? 'slow: ' + slow.join(' ')
    : 'found: ' + (found.join(' ') || 'nothing') + ' secure: ' + isSecureContext;
})();
</script>";

const SHARED: &str =
    "let count = 0, number; onconnect = event => { count++; event.ports[0].postMessage(count);
      event.ports[0].onmessage = event => { number ??= event.data;
        const channel = new BroadcastChannel('leak'); setInterval(() => channel.postMessage(number), 10) } };";

/// A service worker that would replace the next page.
const SERVICE: &str = "addEventListener('install', () => skipWaiting());
    addEventListener('activate', event => event.waitUntil(clients.claim()));
    addEventListener('fetch', event => { if (event.request.mode === 'navigate')
      event.respondWith(new Response('found: a service worker', { headers: { 'content-type': 'text/html' } })) });";

async fn leaks(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let other = harness.other_account().await?;
    harness.put("/shared.js", "text/javascript", SHARED);
    harness.put("/service.js", "text/javascript", SERVICE);
    for host in [platen_harness::site::HOST, SECURE_HOST] {
        let secure = host == SECURE_HOST;
        let mut seen = BTreeMap::new();
        for (visit, target) in [&harness.target, &other, &harness.target, &other].into_iter().enumerate() {
            // A busy machine needs a longer wait.
            for wait in [2_000, 5_000, 10_000] {
                // One URL with a new answer each time: an old answer comes from a cache.
                let number = format!("{visit} {wait}");
                harness.put_cached("/number", &number);
                let page = PAGE.replace("NUMBER", &format!("'{number}'"));
                harness.put("/leaks", "text/html", &page.replace("LIMIT", &(wait / 3).to_string()));
                let url = harness.site_url("/leaks").replace(platen_harness::site::HOST, host);
                // The URL of a job cannot have a host of that name.
                let html = format!("<script>location = '{url}'</script>");
                let body = json!({ "html": html, "format": "pdf", "waitForTimeout": wait });
                let answer = target.render(&body).send().await?;
                let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
                let is_complete = text.starts_with("found: ");
                seen.insert(visit, text);
                if is_complete {
                    break;
                }
            }
        }
        let clean = format!("found: nothing secure: {secure}");
        ensure!(seen.values().all(|text| *text == clean), "{host}: {seen:?}");
    }
    harness.end().await
}
