//! A name server on 127.0.0.1 whose answers a test controls.
//!
//! Names that it was not given do not exist. Answers may be kept for five minutes, which no look-up of Platen does.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use tokio::{net::UdpSocket, task::JoinHandle};

/// Kinds of queries.
pub const A: u16 = 1;
pub const AAAA: u16 = 28;
/// Codes of responses.
pub const SERVER_FAILURE: u8 = 2;
pub const NO_SUCH_NAME: u8 = 3;
pub const REFUSED: u8 = 5;

#[derive(Debug, Default)]
struct State {
    /// The addresses of each name, one after the other; the last repeats.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    failures: HashMap<(String, u16), u8>,
    queries: HashMap<(String, u16), usize>,
}

#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Starts a server without names.
    pub async fn start() -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let (address, state) = (socket.local_addr()?, Arc::<Mutex<State>>::default());
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let answer = answer(&buffer[..length], &mut lock(&shared));
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Ok(Self { address, state, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn put(&self, name: &str, addresses: &[&str]) {
        self.put_in_turn(name, &[addresses]);
    }

    /// Gives a name the first addresses for the first query, the second for the second, and so on.
    pub fn put_in_turn(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().filter_map(|text| text.parse().ok()).collect();
        let mut state = lock(&self.state);
        state.names.insert(name.to_owned(), answers.iter().map(parse).collect());
        state.failures.retain(|(failing, _), _| failing != name);
    }

    /// Answers queries for a name with SERVFAIL.
    pub fn fail(&self, name: &str) {
        self.fail_with(name, &[(A, SERVER_FAILURE), (AAAA, SERVER_FAILURE)]);
    }

    /// Answers queries of these kinds for a name with these codes.
    pub fn fail_with(&self, name: &str, codes: &[(u16, u8)]) {
        lock(&self.state).failures.extend(codes.iter().map(|(kind, code)| ((name.to_owned(), *kind), *code)));
    }

    /// How many times a name was looked up. A query for each address family counts as one look-up.
    pub fn queries(&self, name: &str) -> usize {
        let state = lock(&self.state);
        let count = |kind| state.queries.get(&(name.to_owned(), kind)).copied().unwrap_or(0);
        count(A).max(count(AAAA))
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// RFC 1035, section 4: a header of 12 bytes, the question as it came, and the answers.
fn answer(query: &[u8], state: &mut State) -> Option<Vec<u8>> {
    let (mut offset, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*query.get(offset)?);
        offset += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8(query.get(offset..offset + length)?.to_vec()).ok()?);
        offset += length;
    }
    let name = labels.join(".").to_ascii_lowercase();
    let kind = u16::from_be_bytes(query.get(offset..offset + 2)?.try_into().ok()?);
    let question = query.get(12..offset + 4)?;
    let queries = state.queries.entry((name.clone(), kind)).or_default();
    let turn = *queries;
    *queries += 1;
    let answers = state.names.get(&name);
    let (code, addresses) = match (state.failures.get(&(name, kind)), answers) {
        (Some(code), _) => (*code, &[][..]),
        (None, None) => (NO_SUCH_NAME, &[][..]),
        (None, Some(answers)) => (0, answers.get(turn).or(answers.last()).map_or(&[][..], Vec::as_slice)),
    };
    let octets = addresses.iter().filter_map(|address| match (address, kind) {
        (IpAddr::V4(address), A) => Some(address.octets().to_vec()),
        (IpAddr::V6(address), AAAA) => Some(address.octets().to_vec()),
        _ => None,
    });
    let addresses: Vec<Vec<u8>> = octets.collect();
    let mut reply = query.get(..2)?.to_vec();
    // A response, recursion desired and available; one question.
    reply.extend([0x81, 0x80 | code, 0, 1, 0, u8::try_from(addresses.len()).ok()?, 0, 0, 0, 0]);
    reply.extend(question);
    for address in addresses {
        // The name of the question, class IN, time to live 300 s.
        reply.extend([0xc0, 12]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 1, 44, 0, u8::try_from(address.len()).ok()?]);
        reply.extend(address);
    }
    Some(reply)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
