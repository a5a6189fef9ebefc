//! HAProxy between the Internet and the server, with the file that is shipped.

use std::net::IpAddr;

use futures::future::{join_all, try_join_all};
use platen_harness::{haproxy::HaProxy, tls};
use reqwest::{Certificate, Client, Response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::prelude::*;

const UP_ONLY: &str = "the proxy is the same";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("internet/an_address_with_bad_keys_is_refused_alone", bad_keys).not_on_spin(UP_ONLY),
        Case::own_server("internet/connections_of_an_address_are_limited", connections).not_on_spin(UP_ONLY),
        Case::own_server("internet/slow_requests_end", slow_requests).not_on_spin(UP_ONLY),
    ]
}

/// A server with a stand-in farm behind the proxy.
struct Internet {
    app: TestApp,
    account: Account,
    proxy: HaProxy,
    _farm: StandInFarm,
}

impl Internet {
    async fn start(stage: &Stage) -> Result<Self> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let options = Options::with_farm(stage.deployment, farm.url());
        let options = options.arguments(&["--max-connections-per-address", "0"]);
        let header = ("client_address_header", "x-forwarded-for".to_owned());
        let app = stage.start(&Options { variables: vec![header], ..options }).await?;
        let account = app.operator.account(Quota::Of(1_000)).await?;
        let proxy = HaProxy::for_internet(app.base_url.trim_start_matches("http://").parse()?).await?;
        Ok(Self { app, account, proxy, _farm: farm })
    }

    /// A client with an address 127.0.0.`last`.
    fn client(last: u8) -> Result<Client> {
        let issuer = Certificate::from_pem(&std::fs::read(tls::issuer())?)?;
        let client = Client::builder().no_proxy().tls_certs_merge([issuer]);
        Ok(client.local_address(IpAddr::from([127, 0, 0, last])).build()?)
    }

    async fn render(&self, client: &Client, key: &str) -> reqwest::Result<Response> {
        let url = format!("https://localhost:{}{RENDER}", self.proxy.address().port());
        client.post(url).bearer_auth(key).json(&json!({ "html": "x" })).send().await
    }

    async fn is_served(&self, client: &Client) -> Result<()> {
        let status = self.render(client, &self.account.key).await?.status();
        ensure!(status == 200, "a good client got {status}");
        Ok(())
    }

    /// A connection from 127.0.0.`last` without TLS.
    async fn connect(&self, last: u8) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(([127, 0, 0, last], 0).into())?;
        Ok(socket.connect(self.proxy.address()).await?)
    }
}

async fn bad_keys(stage: Stage) -> Result<()> {
    let internet = Internet::start(&stage).await?;
    let (good, bad) = (Internet::client(1)?, Internet::client(2)?);
    internet.is_served(&good).await?;
    let mut refused = None;
    for _ in 0..100 {
        let burst = (0..20).map(|_| internet.render(&bad, "plt_bad"));
        for response in try_join_all(burst).await? {
            match response.status().as_u16() {
                401 => {}
                429 => refused = Some(response),
                status => anyhow::bail!("a bad key got {status}"),
            }
        }
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.context("an address with bad keys is never refused")?;
    ensure!(refused.headers()["retry-after"] == "10", "{:?}", refused.headers());
    let body: Value = refused.json().await?;
    ensure!(body["code"] == "rate_limit_exceeded", "{body}");
    internet.is_served(&good).await?;
    // A bad key of another address has its own answer.
    let other = internet.render(&Internet::client(3)?, "plt_bad").await?;
    ensure!(other.status() == 401, "{}", other.status());
    Ok(())
}

async fn connections(stage: Stage) -> Result<()> {
    let internet = Internet::start(&stage).await?;
    // Those above the limit of 256 may be closed before they are used.
    let connections = join_all((0..300).map(|_| internet.connect(2))).await;
    let open = connections.iter().filter(|connection| connection.is_ok()).count();
    ensure!(open >= 256, "{open} connections of an address");
    let refused = internet.render(&Internet::client(2)?, &internet.account.key).await;
    ensure!(refused.is_err(), "a further connection of the address was accepted");
    internet.is_served(&Internet::client(1)?).await
}

/// A head and a body of which a part never arrives, and the address that the server sees.
async fn slow_requests(stage: Stage) -> Result<()> {
    let internet = Internet::start(&stage).await?;
    let url = format!("localhost:{}", internet.proxy.address().port());
    let head = format!("POST {RENDER} HTTP/1.1\r\nhost: {url}\r\n");
    let body =
        format!("{head}authorization: Bearer {}\r\ncontent-length: 12\r\n\r\n{{", internet.account.key);
    let slow = [(head, false), (body, true)].map(|(text, is_body)| {
        let internet = &internet;
        async move {
            let mut connection = tls::connect(internet.connect(2).await?).await?;
            connection.write_all(text.as_bytes()).await?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer).await?;
            ensure!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
            // The proxy has an answer of its own before there is a request.
            ensure!(is_body != answer.contains("<html>"), "{answer}");
            Ok(())
        }
    });
    try_join_all(slow).await?;
    internet.is_served(&Internet::client(1)?).await?;
    ensure!(internet.app.operator.attempts(&internet.account.id).await? == 1, "a slow request was counted");
    Ok(())
}
