//! Techniques with which a page sends requests, as data.
//!
//! `URL`, `TLS`, `WS` and `WSS` are replaced by a URL with the technique's name as its path, `HOST` by host and port.

#[derive(Debug, Clone, Copy)]
pub(super) struct Technique {
    pub(super) name: &'static str,
    pub(super) markup: &'static str,
    /// Whether an allowed host gets a plain HTTP request, which proves that the technique works.
    pub(super) reaches: bool,
}

const fn technique(name: &'static str, markup: &'static str) -> Technique {
    Technique { name, markup, reaches: true }
}

/// A technique without plain HTTP, or one that Chromium does not support.
const fn unseen(name: &'static str, markup: &'static str) -> Technique {
    Technique { name, markup, reaches: false }
}

/// Elements and styles.
pub(super) const ELEMENTS: &[Technique] = &[
    technique("img", "<img src='URL'>"),
    technique("srcset", "<img srcset='URL 1x'>"),
    technique("picture", "<picture><source srcset='URL'><img></picture>"),
    technique("image-input", "<input type=image src='URL'>"),
    technique("body-background", "<table background='URL'><td>x</table>"),
    technique("iframe", "<iframe src='URL'></iframe>"),
    technique("iframe-in-srcdoc", "<iframe srcdoc=\"<img src='URL'>\"></iframe>"),
    technique("iframe-in-data", "<iframe src=\"data:text/html,<img src='URL'>\"></iframe>"),
    technique("object", "<object data='URL'></object>"),
    technique("embed", "<embed src='URL'>"),
    technique("script", "<script src='URL'></script>"),
    technique("module", "<script type=module src='URL'></script>"),
    technique("import", "<script type=module>import('URL').catch(() => {})</script>"),
    technique("stylesheet", "<link rel=stylesheet href='URL'>"),
    technique("css-import", "<style>@import 'URL';</style>"),
    technique("css-background", "<p style='background:url(URL)'>x</p>"),
    technique("css-content", "<style>#c::before { content: url(URL) }</style><p id=c>x</p>"),
    technique("css-mask", "<p style='mask-image:url(URL)'>x</p>"),
    technique("css-cursor", "<p style='list-style-image:url(URL);display:list-item'>x</p>"),
    technique(
        "font",
        "<style>@font-face { font-family: f; src: url(URL) }</style><p style='font-family:f'>x</p>",
    ),
    technique("video", "<video src='URL'></video>"),
    technique("poster", "<video poster='URL'></video>"),
    technique("audio", "<audio src='URL' preload=auto></audio>"),
    technique("icon-preload", "<link rel=preload as=image href='URL'>"),
    technique("modulepreload", "<link rel=modulepreload href='URL'>"),
    technique("svg-image", "<svg><image href='URL' width=9 height=9 /></svg>"),
    unseen("svg-use", "<svg><use href='URL#a' /></svg>"),
    unseen(
        "svg-filter",
        "<svg><filter id=f><feImage href='URL'/></filter><rect width=9 height=9 filter='url(#f)'/></svg>",
    ),
    unseen(
        "svg-in-img",
        "<img src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='URL' width='9' height='9'/></svg>\">",
    ),
    technique(
        "svg-in-object",
        "<object data=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='URL' width='9' height='9'/></svg>\"></object>",
    ),
    technique("svg-style", "<svg><style>@import url(URL);</style></svg>"),
    unseen("prefetch", "<link rel=prefetch href='URL'>"),
    unseen("preconnect", "<link rel=preconnect href='URL'><link rel=preconnect href='TLS'>"),
    unseen(
        "dns-prefetch",
        "<meta http-equiv=x-dns-prefetch-control content=on><link rel=dns-prefetch href='URL'>",
    ),
    unseen("prerender", "<link rel=prerender href='URL'>"),
    unseen(
        "speculation",
        "<script type=speculationrules>{\"prefetch\":[{\"urls\":[\"URL\"],\"eagerness\":\"immediate\"}],\"prerender\":[{\"urls\":[\"URL\"],\"eagerness\":\"immediate\"}]}</script>",
    ),
    unseen("manifest", "<link rel=manifest href='URL'>"),
    unseen("icon", "<link rel=icon href='URL'>"),
    unseen(
        "margin-box",
        "<style>@page { @top-left { content: url(URL) } @bottom-left { content: url(URL) } }</style>",
    ),
    technique(
        "form-post",
        "<iframe name=f></iframe><form id=p method=post action='URL' target=f></form><script>p.submit()</script>",
    ),
    unseen("https-img", "<img src='TLS'><iframe src='TLS'></iframe><script src='TLS'></script>"),
];

/// Scripts.
pub(super) const SCRIPTS: &[Technique] = &[
    technique("fetch", "<script>fetch('URL', { mode: 'no-cors' }).catch(() => {})</script>"),
    technique("fetch-cors", "<script>fetch('URL', { method: 'POST', body: 'x' }).catch(() => {})</script>"),
    technique("fetch-keepalive", "<script>fetch('URL', { mode: 'no-cors', keepalive: true }).catch(() => {})</script>"),
    technique("xhr", "<script>{ const x = new XMLHttpRequest; x.open('GET', 'URL'); x.send() }</script>"),
    technique("xhr-sync", "<script>try { const x = new XMLHttpRequest; x.open('GET', 'URL', false); x.send() } catch {}</script>"),
    technique("websocket", "<script>new WebSocket('WS')</script>"),
    unseen("websocket-tls", "<script>new WebSocket('WSS')</script>"),
    technique("event-source", "<script>new EventSource('URL')</script>"),
    technique("beacon", "<script>navigator.sendBeacon('URL', 'x')</script>"),
    technique("new-image", "<script>new Image().src = 'URL'</script>"),
    technique("font-face", "<script>new FontFace('g', 'url(URL)').load().catch(() => {})</script>"),
    technique("worker", "<script>new Worker('data:text/javascript,fetch(`URL`, { mode: `no-cors` })')</script>"),
    technique("worker-import", "<script>new Worker('data:text/javascript,importScripts(`URL`)')</script>"),
    technique("worker-socket", "<script>new Worker('data:text/javascript,new WebSocket(`WS`)')</script>"),
    technique("blob-worker", "<script>new Worker(self['U' + 'RL']['createObjectU' + 'RL'](new Blob([\"fetch('URL', { mode: 'no-cors' })\"])))</script>"),
    unseen("open", "<script>open('URL'); open('URL', '_blank', 'noopener'); open('WSS')</script>"),
    unseen("click", "<a id=a href='URL' target=_blank ping='URL'></a><script>a.click()</script>"),
    unseen("download", "<iframe srcdoc=\"<a id=d href='URL' download></a><script>d.click()</script>\"></iframe>"),
    unseen("form-blank", "<form id=b target=_blank action='URL'></form><script>b.submit()</script>"),
    unseen(
        "stun",
        "<script>for (const urls of ['stun:HOST', 'turn:HOST?transport=udp', 'turn:HOST?transport=tcp', 'turns:HOST?transport=tcp']) {
           const c = new RTCPeerConnection({ iceServers: [{ urls, username: 'u', credential: 'p' }] });
           c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o)) }</script>",
    ),
    unseen(
        "candidate",
        "<script>(async () => { const c = new RTCPeerConnection(), d = new RTCPeerConnection();
           c.createDataChannel('x'); const o = await c.createOffer(); await c.setLocalDescription(o);
           await d.setRemoteDescription(o); const a = await d.createAnswer(); await d.setLocalDescription(a);
           await c.setRemoteDescription(a); const [host, port] = 'HOST'.split(/:(?=[0-9]+$)/);
           for (const t of ['udp', 'tcp']) await c.addIceCandidate({ sdpMid: '0', candidate:
             `candidate:1 1 ${t} 2130706431 ${host.replace(/[\\[\\]]/g, '')} ${port} typ host tcptype passive` }) })().catch(() => {})</script>",
    ),
    unseen("webtransport", "<script>try { new WebTransport('TLS').ready.catch(() => {}) } catch {}</script>"),
    unseen("xslt", "<script>try { const d = new DOMParser().parseFromString('<!DOCTYPE a [<!ENTITY e SYSTEM \"URL\">]><a>&e;</a>', 'text/xml'); document.adoptNode(d) } catch {}</script>"),
    technique("shadow", "<div id=s></div><script>s.attachShadow({ mode: 'open' }).innerHTML = `<style>@import 'URL';</style><img src='URL'>`</script>"),
    technique("late", "<script>setTimeout(() => fetch('URL', { mode: 'no-cors' }), 100)</script>"),
    technique("farewell", "<script>addEventListener('load', () => setTimeout(() => new Image().src = 'URL', 50))</script>"),
];

/// Features of secure contexts, from a worker of the same origin.
pub(super) const SECURE: &[Technique] = &[
    technique("secure-fetch", "<script>fetch('URL', { mode: 'no-cors' }).catch(() => {})</script>"),
    technique("service-worker", "<script>navigator.serviceWorker.register('/worker.js?URL')</script>"),
    technique("shared-worker", "<script>new SharedWorker('/worker.js?URL')</script>"),
    technique("worklet", "<script>new AudioContext().audioWorklet.addModule('URL').catch(() => {})</script>"),
    unseen(
        "private-network",
        "<script>fetch('URL', { mode: 'no-cors', targetAddressSpace: 'local' }).catch(() => {})</script>",
    ),
    unseen(
        "secure-transport",
        "<script>try { new WebTransport('TLS').ready.catch(() => {}) } catch {}</script>",
    ),
    unseen(
        "background-fetch",
        "<script>navigator.serviceWorker.ready.then(r => r.backgroundFetch.fetch('x', ['URL'])).catch(() => {})</script>",
    ),
];

/// The script of every worker: requests the URL in its query when it starts and when it is installed.
pub(super) const WORKER: &str = "const target = decodeURIComponent(location.search.slice(1));
    const ask = () => fetch(target, { mode: 'no-cors' }).catch(() => {});
    ask(); addEventListener('install', event => event.waitUntil(ask()));";

/// Spellings of addresses that no page may reach; `PORT` is replaced by the port of the canaries.
pub(super) const SPELLINGS: &[&str] = &[
    "http://127.0.0.1:PORT/",
    "http://127.0.0.2:PORT/",
    "http://127.1:PORT/",
    "http://127.0.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.1:PORT/",
    "http://0x7f.0x0.0x0.0x1:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://017700000001:PORT/",
    "http://0177.0x0.0.1:PORT/",
    "http://0:PORT/",
    "http://0.0.0.0:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://2130706434:PORT/",
    "http://[::1]:PORT/",
    "http://[0:0:0:0:0:0:0:1]:PORT/",
    "http://[::]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::FFFF:7F00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[::ffff:0:127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]:PORT/",
    "http://[64:ff9b:1::127.0.0.1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://[fe80::5efe:127.0.0.1]:PORT/",
    "http://localhost:PORT/",
    "http://LocalHost:PORT/",
    "http://localhost.:PORT/",
    "http://a.localhost:PORT/",
    "http://a.b.LOCALHOST.:PORT/",
    "http://localhost.localdomain:PORT/",
    "http://user:pass@127.0.0.1:PORT/",
    "http://site.test:80@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@site.test/",
    "http://①②⑦.⓪.⓪.①:PORT/",
    "http://127。0。0。1:PORT/",
    "http://１２７.0.0.1:PORT/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
    "http://%6c%6f%63%61%6c%68%6f%73%74:PORT/",
    "http://%31%32%37.0.0.1:PORT/",
    "http:\\\\127.0.0.1:PORT\\",
    "http:/\\/127.0.0.1:PORT/",
    "ht\ntp://127.0.0.1:PORT/",
    "\\\\localhost\\share",
    "\\\\127.0.0.1:PORT\\x",
    "https://127.0.0.1:PORT/",
    "https://localhost:PORT/",
    "ftp://127.0.0.1:PORT/",
    "http://127-0-0-1.nip.test:PORT/",
    "http://127.0.0.1.nip.test:PORT/",
    "http://under_score.nip.test:PORT/",
    "http://six.nip.test:PORT/",
    "http://mapped.nip.test:PORT/",
    "http://nat64.nip.test:PORT/",
    "http://mixed.nip.test:PORT/",
    "http://mixed6.nip.test:PORT/",
    "http://unspecified.nip.test:PORT/",
    "https://127-0-0-1.nip.test:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[::ffff:a9fe:a9fe]/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/latest/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata.nip.test/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[fc00::1]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
];

/// URLs of files and of pages inside the browser.
pub(super) const INTERNAL_URLS: &[&str] = &[
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "file:/etc/passwd",
    "FILE:///proc/self/environ",
    "view-source:file:///etc/passwd",
    "view-source:http://127.0.0.1:PORT/",
    "chrome://version/",
    "chrome://settings",
    "chrome://net-internals/",
    "chrome-extension://x/",
    "devtools://devtools/bundled/inspector.html",
    "about:version",
    "filesystem:file:///etc/passwd",
    "blob:file:///etc/passwd",
    "jar:file:///etc/passwd!/",
    "content://etc/passwd",
    "gopher://127.0.0.1:PORT/x",
    "dict://127.0.0.1:PORT/x",
    "ldap://127.0.0.1:PORT/x",
    "smb://127.0.0.1/x",
    "javascript:fetch('http://127.0.0.1:PORT/')",
];
