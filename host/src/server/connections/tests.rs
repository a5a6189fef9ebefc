use std::net::IpAddr;

use prometheus_client::registry::Registry;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

use super::{
    eviction::{MIN_NEW_TIME, SLOW_BODY_AGE},
    *,
};
use crate::server::client_socket;

fn connections(max: usize, max_per_address: Option<usize>) -> Arc<Connections> {
    let metrics = Arc::new(Metrics::register(&mut Registry::default(), &<_>::default()));
    Connections::new(max, max_per_address, metrics)
}

fn address(last: u8) -> ClientAddress {
    IpAddr::from([127, 0, 0, last]).into()
}

fn is_evicted(open: &OpenConnection) -> bool {
    open.connection.begin(Activity::Idle).is_err()
}

fn is_closing(open: &OpenConnection) -> bool {
    open.connection.evicted.is_cancelled()
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_connection_of_the_address_with_the_most_is_closed_for_a_new_one() {
    let connections = connections(4, None);
    let mut open = Vec::new();
    for last in [1, 2, 2, 2] {
        open.push(connections.open(address(last)).unwrap());
        sleep(Duration::from_secs(1)).await;
    }
    open[1].connection.begin(Activity::Responding).unwrap();
    let fifth = connections.open(address(3)).unwrap();
    open[1].connection.begin(Activity::Idle).unwrap();
    assert_eq!(open.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true, false]);
    drop((open, fifth));
    assert_eq!(connections.open.lock().count, 0);
    assert_eq!(
        (connections.metrics.connections.get(), connections.metrics.connections_evicted.get()),
        (0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn several_of_many_idle_connections_are_closed_at_once_but_only_idle_ones() {
    let connections = connections(3 * CONNECTIONS_PER_BATCH, None);
    let open: Vec<OpenConnection> =
        (0..3 * CONNECTIONS_PER_BATCH).map(|_| connections.open(address(1)).unwrap()).collect();
    for (number, open) in open.iter().enumerate() {
        let is_idle = number % 40 == 1;
        open.connection.begin(if is_idle { Activity::Idle } else { Activity::ReceivingBody }).unwrap();
    }
    sleep(SLOW_BODY_AGE + Duration::from_secs(1)).await;
    let evicted = || open.iter().enumerate().filter(|(_, it)| is_closing(it)).map(|(number, _)| number);
    let new = [connections.open(address(2)).unwrap()];
    new[0].connection.begin(Activity::Responding).unwrap();
    assert_eq!(evicted().count(), 3);
    assert!(evicted().all(|number| number % 40 == 1));
    let more: Vec<_> = (0..3).map(|_| connections.open(address(2)).unwrap()).collect();
    assert_eq!(evicted().count(), 5, "{:?}", evicted().collect::<Vec<_>>());
    drop((new, more));
}

#[tokio::test(start_paused = true)]
async fn a_connection_between_requests_with_a_valid_key_is_closed_last() {
    let connections = connections(3, None);
    let open = [1, 1, 2].map(|last| connections.open(address(last)).unwrap());
    open[0].connection.set_has_valid_key();
    for open in &open {
        open.connection.begin(Activity::Idle).unwrap();
    }
    let next = || connections.open(address(3)).unwrap().connection.begin(Activity::Responding).unwrap();
    next();
    assert!(open[1].connection.begin(Activity::Idle).is_err(), "that of the address with the most");
    let busy = connections.open(address(3)).unwrap();
    busy.connection.begin(Activity::Responding).unwrap();
    next();
    assert!(open[2].connection.begin(Activity::Idle).is_err());
    let busy = [busy, connections.open(address(3)).unwrap()];
    busy[1].connection.begin(Activity::Responding).unwrap();
    next();
    assert!(open[0].connection.begin(Activity::Idle).is_err(), "there is no other one");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_request_is_not_closed_unless_its_body_is_slow() {
    let connections = connections(2, None);
    let open = [1, 2].map(|last| connections.open(address(last)).unwrap());
    open[0].connection.begin(Activity::Responding).unwrap();
    open[1].connection.begin(Activity::ReceivingBody).unwrap();
    sleep(SLOW_BODY_AGE).await;
    assert_eq!(connections.open(address(3)).err(), Some(Full::Total));
    sleep(Duration::from_secs(1)).await;
    let third = connections.open(address(3)).unwrap();
    assert_eq!(open.each_ref().map(is_evicted), [false, true]);
    drop(third);
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_is_not_closed_before_its_request_can_arrive() {
    let connections = connections(2, None);
    let open = [1, 1].map(|last| connections.open(address(last)).unwrap());
    assert_eq!(connections.open(address(2)).err(), Some(Full::Total));
    // It has had a request.
    open[1].connection.begin(Activity::Idle).unwrap();
    sleep(MIN_NEW_TIME).await;
    let third = connections.open(address(2)).unwrap();
    assert!(is_closing(&open[1]) && !is_closing(&open[0]));
    third.connection.begin(Activity::Responding).unwrap();
    drop(connections.open(address(2)).unwrap());
    assert!(is_closing(&open[0]), "there is no other one");
}

#[tokio::test]
async fn a_connection_is_not_closed_when_its_request_has_arrived() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connections = connections(2, None);
    let (mut clients, mut sockets, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for last in [1, 2] {
        clients.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
        let (socket, unread) = client_socket::split(listener.accept().await.unwrap().0);
        sockets.push(socket);
        open.push(connections.open(address(last)).unwrap());
        open[open.len() - 1].connection.begin(Activity::Idle).unwrap();
        open[open.len() - 1].connection.set_unread(unread);
    }
    let has_unread = |index: usize| open[index].connection.unread.get().unwrap().exist();
    clients[0].write_all(b"G").await.unwrap();
    while !has_unread(0) {
        sleep(Duration::from_millis(1)).await;
    }
    let third = connections.open(address(3)).unwrap();
    assert!(open[1].connection.begin(Activity::Idle).is_err());
    third.connection.begin(Activity::Responding).unwrap();
    assert_eq!(connections.open(address(4)).err(), Some(Full::Total));
    sockets[0].read_exact(&mut [0]).await.unwrap();
    connections.open(address(4)).unwrap();
    assert!(open[0].connection.begin(Activity::Idle).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_lowered_for_a_while_where_files_are_missing() {
    let connections = connections(99, None);
    let open: Vec<OpenConnection> = (0..20).map(|_| connections.open(address(1)).unwrap()).collect();
    for open in &open {
        open.connection.begin(Activity::Idle).unwrap();
    }
    assert_eq!(connections.lower_max(), 10);
    assert_eq!(open.iter().filter(|it| is_evicted(it)).count(), 10);
    assert_eq!([connections.lower_max(), connections.lower_max()], [5, 3]);
    assert_eq!([connections.lower_max(), connections.lower_max()], [2, 1]);
    let last = connections.open(address(2)).unwrap();
    assert_eq!(connections.open.lock().count, 1);
    sleep(LOWERED_TIME + Duration::from_secs(1)).await;
    let next = connections.open(address(2)).unwrap();
    assert!(!is_evicted(&last) && !is_evicted(&next));
}

#[tokio::test(start_paused = true)]
async fn an_address_has_a_limit() {
    let connections = connections(9, Some(2));
    let open = [1, 1].map(|last| connections.open(address(last)).unwrap());
    for open in &open {
        open.connection.begin(Activity::Responding).unwrap();
    }
    assert_eq!(connections.open(address(1)).err(), Some(Full::Share));
    let other = connections.open(address(2)).unwrap();
    open[0].connection.begin(Activity::Idle).unwrap();
    drop(connections.open(address(1)).unwrap());
    assert!(is_evicted(&open[0]) && !is_evicted(&open[1]) && !is_evicted(&other));
}
